"""Parts of a learner: statistics, actors, critics, losses, memory and replay."""
