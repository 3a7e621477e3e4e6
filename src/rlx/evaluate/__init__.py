"""MEASURE a policy: protocols, rollouts, videos."""
