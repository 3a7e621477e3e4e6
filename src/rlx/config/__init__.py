"""WHAT to run: typed configs, how they are read, compared and shipped."""
