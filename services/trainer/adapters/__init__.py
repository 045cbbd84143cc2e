"""Where the trainer touches the outside world."""
