"""Pure decisions of the trainer: no I/O, no clock; callers pass in any randomness."""
