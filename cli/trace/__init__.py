"""From a reward back to the play that taught it: the objects behind a segment or an epoch, with their digests."""
