"""Building blocks within one process: bounded memory, duplicate suppression, failpoints, process exit."""
