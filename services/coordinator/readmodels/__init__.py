"""Read models: what the object store says about runs, cached in memory. Nothing here writes."""
