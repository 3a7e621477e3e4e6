"""How rlx starts Python processes: fork, re-exec and worker pools."""
