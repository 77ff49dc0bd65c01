"""Slurm behind one port: the port itself and the ways to speak to it."""
