"""Pure state machines that bound the calls of a route: breaker, calls in flight, time and choices of a call."""
