"""Pictures of runs: learning curves, performance profiles, intervals; each a file of its own kind of picture."""
