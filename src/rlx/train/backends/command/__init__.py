"""The command backend: a repository's own training program."""
