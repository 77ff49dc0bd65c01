"""Runs the packages and the tests on every Slurm release: `./run matrix` and `./run package`.

Each release is the Slurm of one Debian suite, in a root of its own below ``.matrix/``.
"""
