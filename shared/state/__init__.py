"""Durable state on create-if-absent: run records, leader lease, score and segment listings."""
