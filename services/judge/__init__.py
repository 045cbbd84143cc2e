"""Judge: three LLM judges score a segment by votes; emits `scores.ready`."""
