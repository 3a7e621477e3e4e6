"""Planners: where proposals come from besides a sampler. Pure: they read answers, they do not fetch them."""
