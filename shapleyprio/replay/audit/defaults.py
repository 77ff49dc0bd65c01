"""Defaults of an audit; numpy is not imported, so that help texts can name them."""

from __future__ import annotations

from shapleyprio.common.wording import DAY

MOST_FOR_ALL = 14
"""Organizations up to which all coalitions count by default; each one more doubles the time."""

PERIOD = DAY
"""Seconds of the periods for which use and contribution are reported by default."""
