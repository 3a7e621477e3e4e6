"""Films and contact sheets of episodes."""
