"""Several runs on one local system: how fast they train together, and whether anything was lost or mixed up."""
