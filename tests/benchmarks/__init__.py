"""Benchmarks: `make bench` runs all, `make bench ONLY="append list"` some. One JSON line each: the ratio to the raw
counterpart of the same run, both raw figures, the target, the machine. A and B are interleaved; figures are medians."""
