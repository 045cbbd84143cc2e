"""Adapters of the reward model service: score objects, segment archives, model storage, the training process."""
