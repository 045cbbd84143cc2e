"""Imitation of judged play: which rows the policy imitates, and how strongly."""
