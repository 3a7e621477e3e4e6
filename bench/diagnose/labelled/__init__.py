"""Trainings with a planted fault, healthy ones beside them, and what tells the two apart."""
