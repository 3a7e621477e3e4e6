"""A courier learns to cross a square with a pond in it."""
