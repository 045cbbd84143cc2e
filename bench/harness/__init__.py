"""What the benchmarks share: interleaved measuring, games and segments to measure, and processes to measure against."""
