"""Git objects, worktrees and differences between trees."""
