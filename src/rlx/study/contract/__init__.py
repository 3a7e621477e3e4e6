"""The contract of a study: schema, checks, fixes and the view of it."""
