"""WHAT happened: run folders, metrics, checkpoints, and the index over them."""
