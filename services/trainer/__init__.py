"""Trainer: one PPO epoch on Ray RLlib per `rm.ready`; emits `segment.ready` and `epoch.finished`."""
