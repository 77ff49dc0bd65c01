"""Contributions for the rule ``shapley``, estimated beside the daemon's cycles.

The daemon keeps a worker, ``python -m shapleyprio.daemon.estimation``, and asks it now and then.
The worker reads the store, and it alone imports what estimates need.
"""
