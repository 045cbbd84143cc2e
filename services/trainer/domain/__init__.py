"""Pure decisions of the trainer: no I/O, no clock, no randomness that is not passed in."""
