"""Pure decisions of the reward model service: numpy and arithmetic; no I/O, no clock, no unseeded dice."""
