"""Trained policies: as a file for other programs, and at play."""
