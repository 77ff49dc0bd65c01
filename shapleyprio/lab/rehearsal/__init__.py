"""A site's own jobs on a private real Slurm of the site's shape, under several configurations.

The configuration is taken over from slurm.conf, `sacctmgr dump` and `sacctmgr show qos`, the jobs
are those that accounting has, and everything else is as in `shapleyprio.lab.trial`.

Needs ``pip install 'shapleyprio[trial]'``.
"""
