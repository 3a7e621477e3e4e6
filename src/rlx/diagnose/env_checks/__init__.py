"""Findings from the record of an environment inspection."""
