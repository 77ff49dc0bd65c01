"""The adapter that asks Slurm's library, through the Python package pyslurm, in a worker process.

pyslurm holds Python's lock for as long as Slurm takes to answer: while slurmctld is frozen, every
thread of its process stands still. So it is imported in the worker alone (`__main__`), which is
killed when an answer takes too long.
"""
