"""Decide between two configs: train seeds until the evidence settles it."""
