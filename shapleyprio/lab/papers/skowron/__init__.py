"""The experiments of Skowron & Rzadca, SPAA 2013, section 7: Tables 1 and 2, and Fig. 10."""

from __future__ import annotations

from shapleyprio.lab.papers.skowron.preset import skowron_2013

__all__ = ["skowron_2013"]
