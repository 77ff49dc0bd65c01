"""The adapter that runs Slurm's own commands."""
