"""The five services of the ring; none imports another."""
