"""Before the first run: knowledge cards, recommendations, the spec of a problem, and recipes that run."""
