"""Sweeps: search wide on one seed, race the best on more, and confirm the winner on fresh seeds."""
