"""Benchmarks: each checks its answer, prints a table with the ratio to a peer of the same run, and keeps a JSON
result."""
