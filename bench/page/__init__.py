"""What the live page needs with many runs: `python -m bench.page`."""
