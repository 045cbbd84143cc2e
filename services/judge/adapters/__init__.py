"""Where the judge touches the outside world."""
