"""Runs one service process: connections, probes, consumption, drain."""
