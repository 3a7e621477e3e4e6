"""The Stable-Baselines3 backend."""
