"""Explored paths that several studies begin with: an exploration takes longer than the training of a small world."""
