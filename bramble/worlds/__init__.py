"""Worlds: their text files, model, parsers, checks, milestones and the ROM builder."""
