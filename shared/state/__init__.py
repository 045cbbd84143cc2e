"""Durable run records and the leader lease, both built on create-if-absent."""
