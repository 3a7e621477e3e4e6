"""Evaluation by a repository's own command, from a pinned tree."""
