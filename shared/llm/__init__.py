"""Calls language models: routes with breaker, adaptive concurrency, token files and budgets."""
