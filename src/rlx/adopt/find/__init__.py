"""Finders: each one looks for one kind of fact in the files of a repository."""
