"""Iterating: train, look, decide, by a declared plan and through the one door."""
