"""Reconciling: moves runs from epoch to epoch, republishes lost events, writes the reports of a run."""
