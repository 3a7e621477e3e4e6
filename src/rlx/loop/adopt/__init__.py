"""Adopt a foreign repository: scan, draft, write and try."""
