"""Imitation of judged play and of the archive's trajectories: which rows the policy imitates, and how strongly."""
