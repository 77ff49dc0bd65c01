"""Workloads: the jobs of a log, whose they are, and the processors they run on."""
