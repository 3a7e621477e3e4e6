"""Foreign code and foreign logs: read a repository without running it, draft a task from it, import finished runs."""
