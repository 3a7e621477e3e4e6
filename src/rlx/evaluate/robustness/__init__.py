"""Policies under changed conditions: parameter sweeps and disturbances."""
