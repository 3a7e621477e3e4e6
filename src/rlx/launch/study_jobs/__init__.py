"""Jobs of a study: check a candidate, launch its job, follow it, record how it ended."""
