"""Trainings with a planted fault, healthy ones for comparison, and the code that tells them apart."""
