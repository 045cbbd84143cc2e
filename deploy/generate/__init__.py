"""Generates files under `charts/` and `deploy/` that nobody edits by hand: `python -m deploy.generate`."""
