"""Fair priorities for Slurm clusters that several organizations pay for together."""
