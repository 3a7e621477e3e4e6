"""What carries jobs, one a file: this process, this machine, a scheduler's own commands."""
