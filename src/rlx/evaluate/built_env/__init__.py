"""Checks of an environment that an agent built, played by the person's judge."""
