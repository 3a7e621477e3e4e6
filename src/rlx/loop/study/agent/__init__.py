"""What somebody without context needs: one call per idea, ideas with evidence, and what was learned so far."""
