"""Worlds by seed (`wild:SEED`), drawn at random and kept only if the planner can finish them."""
