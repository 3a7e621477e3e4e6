"""Interchangeable trainers, found by name through rlx.plugins."""
