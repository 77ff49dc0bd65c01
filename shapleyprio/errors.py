"""Errors that commands must know without importing the heavy packages behind them."""

from __future__ import annotations


class ReplayError(Exception):
    """A replay cannot be made of this input; the message says where, what and how to mend it."""
