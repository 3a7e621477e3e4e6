"""A candidate: one bounded change, the files and keys it touches, and the experiment its job trains."""
