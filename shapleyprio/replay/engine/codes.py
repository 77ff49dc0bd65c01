"""The codes of the decisions in `native/choice.c`, as in `native/state.h`; their order is free."""

from __future__ import annotations

KEYED = 0
"""The least of keys that the engine is given where not all that waits can start: Ref and Rand."""

RANKED = 9
"""The least of keys that the engine is given wherever several organizations wait."""

DIRECT = 1
RELATIVE = 2
SURFACE = 3
FAIR_SHARE = 4
UTILITY_SHARE = 5
CURRENT_SHARE = 6
ROUND_ROBIN = 7
FIRST_COME = 8
KARMA = 10
DECAYED_SHARE = 11
KAI = 12
