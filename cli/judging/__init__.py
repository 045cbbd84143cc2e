"""Judging by hand: reads the judges that a command asks, and shows how far they are."""
