"""The RAM table and everything that reads one variable of a RAM image."""
