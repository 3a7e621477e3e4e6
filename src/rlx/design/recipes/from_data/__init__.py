"""Learning from data: demonstrations, fixed datasets and preferences."""
