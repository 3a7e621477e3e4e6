"""Executors: the ways to start a job (in this process, on this machine, through a scheduler)."""
