"""Importers: each one reads the finished runs of one format."""
