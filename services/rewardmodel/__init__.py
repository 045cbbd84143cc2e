"""Reward model: a Bradley-Terry ensemble learnt from scores; emits `rm.trained`."""
