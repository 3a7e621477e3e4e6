"""Profiles: what rlx knows about a framework, one file per framework."""
