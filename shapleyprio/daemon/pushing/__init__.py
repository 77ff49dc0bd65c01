"""Priorities into Slurm, and back out of it: who may write, what is written, what is left alone."""
