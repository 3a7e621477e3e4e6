"""A policy in its own process: it receives observations and answers with actions."""
