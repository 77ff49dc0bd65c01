"""Replays logs: what happened, what each policy would have made of it, and what was fair.

A log is read, its jobs and processors are given to organizations, and policies schedule the jobs
of a window again. Needs ``pip install 'shapleyprio[replay]'``, and pandas for
`starts_frame` and `comparison_frame`.

A day of two organizations in the Standard Workload Format: at second 0 the first one (user 1)
floods both processors with four jobs of 100 s, at second 10 the second one (user 2) wants the
processor it brought.

>>> from tempfile import NamedTemporaryFile
>>> from shapleyprio.config import Organization
>>> from shapleyprio.replay import (
...     Window, comparison_frame, consortium_of, measure, read_log, run_policy, starts_frame,
...     turns_of, unfairness, workload_of,
... )
>>> with NamedTemporaryFile("w", suffix=".swf") as file:
...     for job, release, user in [(1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 0, 1), (5, 10, 2)]:
...         print(f"{job} {release} 0 100 1 -1 -1 1 -1 -1 1 {user} 1 -1 -1 -1 -1 -1", file=file)
...     file.flush()
...     log = read_log(file.name)
>>> log.release
array([ 0,  0,  0,  0, 10])

Whose are they? The tables are those of the daemon's configuration (`load_organizations` reads
them from a file); `deal` gives users and processors out by chance, as the papers do.

>>> consortium = consortium_of(log, [
...     Organization(name="biology", users=["1"], processors=1),
...     Organization(name="physics", users=["2"], processors=1),
... ])

A window begins with an empty system; policies are named as on the command line.

>>> workload = workload_of(log, consortium, window=Window(start=0, length=300))
>>> fair, first_come = run_policy(workload, "ref"), run_policy(workload, "fcfs")
>>> [int(second) for second in first_come.start]
[0, 0, 100, 100, 200]
>>> print(starts_frame(workload, fair)[["job", "organization", "release", "start", "copies"]])
   job organization  release  start  copies
0    1      biology        0      0       1
1    2      biology        0      0       1
2    5      physics       10    100       1
3    3      biology        0    100       1
4    4      biology        0    200       1

Utilities are exact integers, contributions exact fractions. In order of release every part of
work would have come 40 s too early or too late on average.

>>> measure(workload, fair).utilities
(70200, 15050)
>>> print(*fair.contribution)
53175 32075
>>> float(unfairness(measure(workload, first_come), measure(workload, fair)))
40.0

Each decision can also be judged by itself. The two processors that came free at second 100 both
went to biology, where the fair rule would have given physics one.

>>> turns_of(workload, [fair, first_come])
(Turns(contested=1, out_of_turn=0), Turns(contested=1, out_of_turn=1))
>>> table = comparison_frame(workload, [fair, first_come])
>>> print(table[["policy", "organization", "mean_wait", "drift"]])
  policy organization  mean_wait  drift
0    ref      biology       75.0    0.0
1    ref      physics       90.0    0.0
2   fcfs      biology       50.0   20.0
3   fcfs      physics      190.0  -20.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapleyprio.common.errors import ReplayError as ReplayError
    from shapleyprio.fairness.rule import OrganizationState as OrganizationState
    from shapleyprio.fairness.rule import Situation as Situation
    from shapleyprio.replay.engine.schedule import Schedule as Schedule
    from shapleyprio.replay.frames import comparison_frame as comparison_frame
    from shapleyprio.replay.frames import starts_frame as starts_frame
    from shapleyprio.replay.logs.reading import read_log as read_log
    from shapleyprio.replay.measures.measures import Measures as Measures
    from shapleyprio.replay.measures.measures import drifts as drifts
    from shapleyprio.replay.measures.measures import measure as measure
    from shapleyprio.replay.measures.measures import unfairness as unfairness
    from shapleyprio.replay.measures.turns import Turns as Turns
    from shapleyprio.replay.measures.turns import turns_of as turns_of
    from shapleyprio.replay.policies import POLICIES as POLICIES
    from shapleyprio.replay.policies import run_policy as run_policy
    from shapleyprio.replay.workloads.dealing import deal as deal
    from shapleyprio.replay.workloads.log import Log as Log
    from shapleyprio.replay.workloads.organizations import consortium_of as consortium_of
    from shapleyprio.replay.workloads.organizations import load_organizations as load_organizations
    from shapleyprio.replay.workloads.workload import Consortium as Consortium
    from shapleyprio.replay.workloads.workload import Window as Window
    from shapleyprio.replay.workloads.workload import Workload as Workload
    from shapleyprio.replay.workloads.workload import whole_log as whole_log
    from shapleyprio.replay.workloads.workload import workload_of as workload_of

_MODULES = {
    "shapleyprio.common.errors": ("ReplayError",),
    "shapleyprio.fairness.rule": ("OrganizationState", "Situation"),
    "shapleyprio.replay.workloads.dealing": ("deal",),
    "shapleyprio.replay.frames": ("comparison_frame", "starts_frame"),
    "shapleyprio.replay.workloads.log": ("Log",),
    "shapleyprio.replay.measures.measures": ("Measures", "drifts", "measure", "unfairness"),
    "shapleyprio.replay.workloads.organizations": ("consortium_of", "load_organizations"),
    "shapleyprio.replay.policies": ("POLICIES", "run_policy"),
    "shapleyprio.replay.logs.reading": ("read_log",),
    "shapleyprio.replay.engine.schedule": ("Schedule",),
    "shapleyprio.replay.measures.turns": ("Turns", "turns_of"),
    "shapleyprio.replay.workloads.workload": (
        *("Consortium", "Window", "Workload", "whole_log", "workload_of"),
    ),
}
"""Module -> the names it has here. They are imported at first use, so that the light modules, such
as the registry of policies, is available without numpy."""

_ORIGINS = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Imports a name of the package at its first use."""
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_ORIGINS[name]), name)
    globals()[name] = value
    return value
