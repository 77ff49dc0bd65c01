"""Errors in the input of a replay."""

from __future__ import annotations

from shapleyprio.common.errors import ReplayError


class LogError(ReplayError):
    """A log cannot be read."""


class WorkloadError(ReplayError):
    """The jobs and organizations do not make a workload."""


class PolicyError(ReplayError):
    """A policy is unknown, or cannot schedule this workload exactly."""
