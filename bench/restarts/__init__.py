"""What restarts from the archive of states cost training."""
