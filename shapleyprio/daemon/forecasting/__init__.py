"""When waiting jobs will start, forecast beside the daemon's cycles.

The daemon keeps a worker, ``python -m shapleyprio.daemon.forecasting``, and asks it after cycles.
The worker reads the store, and it alone imports what futures need.
"""
