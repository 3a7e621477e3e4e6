"""Review of a reward before training: its source, its steps, its ranking of stored episodes."""
