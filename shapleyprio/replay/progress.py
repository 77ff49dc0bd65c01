"""How long computations and reads show how far they are."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[int], None]
"""Gets how much is done so far: seconds of a window, bytes or runs."""
