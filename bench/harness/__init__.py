"""Parts of the benchmarks: interleaved measurement, workloads, and the processes under test."""
