"""Coordinator: owns runs, chooses the reward model of each epoch, serves the REST API and the live page."""
