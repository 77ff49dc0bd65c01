"""Defaults of an audit; numpy is not imported, so that help texts can name them."""

from __future__ import annotations

MOST_FOR_ALL = 14
"""Organizations up to which all coalitions count by default; each one more doubles the time."""

PERIOD = 86_400
"""Seconds of the periods for which use and contribution are reported by default."""
