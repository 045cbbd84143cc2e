"""Several runs on one system: how fast they train, and what is lost or mixed up: `python -m bench.parallel_runs`."""
