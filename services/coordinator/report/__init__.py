"""The report of a run: one HTML file with the parts of the live page, which needs no server."""
