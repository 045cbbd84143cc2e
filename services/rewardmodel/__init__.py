"""Reward model service: trains a Bradley-Terry ensemble on the judges' scores; emits `rm.trained`."""
