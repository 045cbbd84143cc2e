"""Pure decisions of the coordinator: no I/O, no clock, no randomness."""
