"""The daemon's costs to a real Slurm."""
