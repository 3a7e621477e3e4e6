"""FACES, no logic: the ways people and agents reach rlx."""
