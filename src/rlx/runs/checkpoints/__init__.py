"""Checkpoints: bundles, tensors, and files that other programs wrote."""
