"""The daemon over HTTP: metrics for Prometheus, a status page, and its data as JSON.

One server at ``metrics.address``, read-only, on threads of its own. A request does not call
Slurm: it is answered from the store, from the metrics of the last cycle and from the last findings
of `check`.
"""

from shapleyprio.daemon.serving.checks import Checked
from shapleyprio.daemon.serving.site import Site

__all__ = ["Checked", "Site"]
