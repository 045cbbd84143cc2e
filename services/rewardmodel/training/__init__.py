"""Fits the ensemble and measures it. The only package of this service that imports torch; no I/O."""
