"""What to try next: search spaces, samplers, halving over training length, and a race over seeds. No I/O."""
