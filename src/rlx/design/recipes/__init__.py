"""Small reference implementations to read, run and copy. Each one ends in claims about numbers that it measured."""
