"""The WORLD: environments made, vectorised, and their state kept."""
