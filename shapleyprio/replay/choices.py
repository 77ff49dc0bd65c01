"""What can be chosen for a replay; numpy is not imported, so that help texts can name it.

The first of each is taken unless another is named.
"""

from __future__ import annotations

from typing import Literal

Shares = Literal["zipf", "uniform"]
Wide = Literal["expand", "rigid"]
Backfill = Literal["none", "easy"]
Placement = Literal["random", "least-loaded", "recorded"]
