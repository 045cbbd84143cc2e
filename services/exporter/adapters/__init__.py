"""Where the exporter touches the outside world."""
