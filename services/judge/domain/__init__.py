"""Pure decisions of the judge: no I/O, no clock, no randomness that is not passed in."""
