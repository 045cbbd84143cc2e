"""Fits and evaluates the ensemble. Only this package of the service imports torch; only `worker` does I/O."""
