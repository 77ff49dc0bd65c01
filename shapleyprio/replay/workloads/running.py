"""How what a running job will free is packed into one number (`native/running.h`)."""

from __future__ import annotations

COUNT_BITS = 24
OWNER_BITS = 8
PLACE_BITS = 13
LARGEST_COUNT: int = 2**COUNT_BITS - 1
