"""PyBoy: one running game, its RAM at rest, and how an episode begins."""
