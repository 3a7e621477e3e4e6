"""Finders of a program's config system and options."""
