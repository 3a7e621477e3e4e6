"""Measuring and running: robustness, attacks, statistics, batches, placement and checkpoints."""
