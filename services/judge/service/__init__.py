"""The judge at work: from `segment.ready` to a committed score, and the ledger of an epoch."""
