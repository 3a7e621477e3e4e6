"""A task: a problem in a repository, and how rlx infers it."""
