"""Pure decisions of the exporter: no I/O, no clock, no randomness that is not passed in."""
