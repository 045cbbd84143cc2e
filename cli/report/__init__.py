"""The report of a run: one self-contained HTML file, made from the objects in the store."""
