"""The fast backend: PPO for small networks in NumPy, many seeds at once."""
