"""Where the rewardmodel touches the outside world."""
