"""Pictures of runs and studies: one module per kind of picture."""
