"""Worlds and agents: shaping, ends, levels, randomisation, several agents and games."""
