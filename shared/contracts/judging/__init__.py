"""What judges did in an epoch: their quality and cost, and the pairs of segments that they compared."""
