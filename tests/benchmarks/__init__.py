"""Benchmarks: ratios measured in one run, printed as a table; tests run them on tiny graphs."""
