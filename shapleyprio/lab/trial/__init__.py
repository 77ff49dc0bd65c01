"""The same jobs through a private real Slurm: under its own policies, and steered by us.

A workload of `shapleyprio.replay` is submitted to a Slurm whose nodes belong to the organizations,
every job at its release and with its true processing time, on an accelerated clock. What Slurm
made of it is read from its accounting and measured as a replay's schedules are.

Needs ``pip install 'shapleyprio[trial]'``.
"""
