"""Benchmarks that assert their answers and print ratios measured in one run. `make bench` runs them all."""
