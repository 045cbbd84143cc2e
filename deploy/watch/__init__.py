"""Watches a running local system with a real Prometheus: which dashboard queries have data, and pictures of them."""
