"""The laboratory: simulated and private Slurms, trials, experiments, benchmarks and the demo.

No head node needs it, and nothing outside imports it. Its commands are found by name.
"""
