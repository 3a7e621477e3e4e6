"""Sealed evaluation: checkpoints are measured in a separate sandboxed process, from a pinned tree."""
