"""Checks with a real Prometheus which dashboard queries have data on a local system, and draws the dashboards."""
