"""Slurm behind one port: the port itself, the adapters, and the channels for priorities."""
