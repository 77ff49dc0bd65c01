"""A private real Slurm on one machine, for the demo and the integration tests."""
