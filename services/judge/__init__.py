"""Judge: several LLM judges vote on each recorded segment; their merged score is announced by `scores.ready`."""
