"""Trainings of several seeds in environments that no rule was tuned on: worlds, cases, and how they are judged."""
