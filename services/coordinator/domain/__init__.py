"""Pure decisions of the coordinator: no I/O, no clock, no randomness that is not passed in."""
