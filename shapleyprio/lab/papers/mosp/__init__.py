"""The preset `mosp-2007`: several organizations' batches of jobs, scheduled by MOLBA.

Pascual, Rzadca & Trystram, *Cooperation in multi-organization scheduling* (Euro-Par 2007).
"""

from __future__ import annotations

from shapleyprio.lab.papers.mosp.preset import mosp_2007

__all__ = ["mosp_2007"]
