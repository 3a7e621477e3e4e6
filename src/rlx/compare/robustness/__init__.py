"""How well trained policies work in changed worlds: brittleness, feasible range, retained gain."""
