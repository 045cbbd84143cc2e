"""The report of a run: one HTML file that needs nothing beside it, made from what the store holds."""
