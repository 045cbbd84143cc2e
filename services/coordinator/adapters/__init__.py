"""Where the coordinator touches the outside world."""
