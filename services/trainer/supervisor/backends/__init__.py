"""Where drivers run: one port, with child processes and Ray jobs behind it."""
