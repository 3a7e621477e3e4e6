"""The steps of a study: one file per verb."""
