"""What Slurm's commands print, read."""
