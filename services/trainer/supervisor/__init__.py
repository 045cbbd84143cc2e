"""The drivers of all active runs, started and watched by the trainer service."""
