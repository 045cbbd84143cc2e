"""Pure decisions of the reward model service: no I/O, no clock; random generators are passed in."""
