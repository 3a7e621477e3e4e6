"""Start, follow and stop jobs: plain runs, jobs of a study, background commands."""
