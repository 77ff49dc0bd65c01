"""The paper's workloads, and the figures of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Published = Mapping[str, Mapping[str, tuple[float, float]]]
"""Workload -> policy -> mean and standard deviation of Δψ/p_tot, in seconds."""


@dataclass(frozen=True, slots=True)
class SkowronLog:
    """A log of the Parallel Workloads Archive.

    Attributes:
        log: what it is called here.
        file: its name in the archive.
        processors: of the system: the paper's, or for a substitute the archive's.
        substitute: whether the paper does not use it.
    """

    log: str
    file: str
    processors: int
    substitute: bool = False


SOURCES = (
    SkowronLog("LPC", "LPC-EGEE-2004-1.2-cln.swf.gz", 70),
    SkowronLog("RICC", "RICC-2010-2.swf.gz", 8192),
    SkowronLog("METACENTRUM", "METACENTRUM-2009-2.swf.gz", 806, substitute=True),
    SkowronLog("HPC2N", "HPC2N-2002-2.2-cln.swf.gz", 240, substitute=True),
)

ELSEWHERE = ("PIK-IPLEX", "SHARCNET-Whale")
"""The paper's other two workloads, which are not supported here."""

SHORT = "table-1"
LONG = "table-2"
MANY = "figure-10"

WINDOW_SECONDS = {SHORT: 50_000, LONG: 500_000, MANY: 50_000}
"""Fig. 10 does not say; windows as in Table 1 keep many organizations affordable."""

_TABLE_1: Published = {
    "LPC": {
        "roundrobin": (238, 353),
        "rand-15": (8, 21),
        "directcontr": (5, 11),
        "fairshare": (16, 25),
        "utfairshare": (16, 25),
        "currfairshare": (87, 106),
    },
    "RICC": {
        "roundrobin": (2839, 357),
        "rand-15": (162, 187),
        "directcontr": (537, 303),
        "fairshare": (626, 309),
        "utfairshare": (515, 284),
        "currfairshare": (1231, 243),
    },
}

_TABLE_2: Published = {
    "LPC": {
        "roundrobin": (4511, 6257),
        "rand-15": (562, 1670),
        "directcontr": (410, 1083),
        "fairshare": (575, 1404),
        "utfairshare": (888, 2101),
        "currfairshare": (1082, 2091),
    },
    "RICC": {
        "roundrobin": (10850, 13773),
        "rand-15": (771, 1479),
        "directcontr": (1808, 3397),
        "fairshare": (2746, 4070),
        "utfairshare": (4963, 6080),
        "currfairshare": (5387, 9083),
    },
}

PUBLISHED: Mapping[str, Published] = {SHORT: _TABLE_1, LONG: _TABLE_2, MANY: {}}
"""Exhibit -> its figures; Fig. 10 is a drawing without figures."""
