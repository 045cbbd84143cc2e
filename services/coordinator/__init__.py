"""Coordinator: owns runs, decides which reward model shapes the next epoch, serves the REST API."""
