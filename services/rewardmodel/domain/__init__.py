"""Pure decisions of the rewardmodel: no I/O, no clock, no randomness that is not passed in."""
