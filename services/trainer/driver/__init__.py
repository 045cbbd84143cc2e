"""The driver: the process that trains one run."""
