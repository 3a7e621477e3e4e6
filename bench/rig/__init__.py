"""Tools that the benchmarks measure with."""
