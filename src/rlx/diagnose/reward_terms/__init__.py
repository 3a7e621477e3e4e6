"""Reward terms of a run: load them, describe them, and find their defects."""
