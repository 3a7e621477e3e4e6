"""Play an environment in many ways and record how it behaves."""
