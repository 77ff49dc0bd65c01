"""Sees of most lists of hosts that they are such, without writing out the hosts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shapleyprio.native import native
from shapleyprio.replay.columns import Column, Fields
from shapleyprio.slurm.text import LARGEST_HOST_LIST


def surely_hosts(column: Column) -> NDArray[np.bool_]:
    """Returns which fields are plain lists of hosts, such as ``cn7`` and ``cn[1-3,008],gpu-2``.

    `shapleyprio.slurm.text.hosts` reads them; the others it may read or not.
    """
    found = np.empty(len(column.begin), np.bool_)
    _surely(column.fields, LARGEST_HOST_LIST, found)
    return found


@native("host_lists_surely")
def _surely(fields: Fields, most: int, found: NDArray[np.bool_]) -> None:
    """Says which texts are plain lists of so many hosts at most."""
