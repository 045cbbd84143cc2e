"""Restarts: a training run fills a state archive, and a share of its episodes begins at states of it."""
