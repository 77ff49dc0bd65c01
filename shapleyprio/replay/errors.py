"""What can be wrong with a replay; light, for every command imports it to know its exit code."""

from __future__ import annotations


class ReplayError(Exception):
    """A replay cannot be made of this input; the message says where, what and how to mend it."""
