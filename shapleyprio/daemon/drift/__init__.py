"""The live drift: how far the last window was from fair, replayed beside the daemon.

The daemon starts a worker, ``python -m shapleyprio.daemon.drift``, hands it a request and stores
what it answers. The worker alone imports what replays need.
"""
