"""Benchmarks. Each script prints a table and, with `--json FILE`, writes its figures under fixed keys."""
