"""Which configurations the daemons of a cluster have taken over or refused, and when."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, Select, func, select

from shapleyprio.store.rows import ConfigurationRow
from shapleyprio.store.scope import Scope, columns, values_of
from shapleyprio.store.tables import configuration


class ConfigurationsView(Scope):
    """Reads configurations."""

    def configurations(self, since: int) -> list[ConfigurationRow]:
        """Returns those of `since` and later, the oldest first, behind the one then in force."""
        in_force = _in_force(self._here(configuration), since).scalar_subquery()
        query = select(*columns(configuration)).where(
            self._here(configuration),
            (configuration.c.at >= since) | (configuration.c.number == in_force),
        )
        return self._read(ConfigurationRow, query.order_by(configuration.c.number))


class Configurations(ConfigurationsView):
    """Writes configurations."""

    def note_configuration(self, at: int, version: str, written: Mapping[str, str]) -> None:
        """Stores the configuration that is taken over, if it or the version is another one."""
        last = [row for row in self.configurations(at + 1) if not row.refused]
        if not last or (last[-1].version, last[-1].written) != (version, dict(written)):
            self._note(at, version, written, "")

    def note_refusal(self, at: int, version: str, why: str) -> None:
        """Stores that a configuration was refused."""
        self._note(at, version, {}, why)

    def _note(self, at: int, version: str, written: Mapping[str, str], refused: str) -> None:
        last = self._connection.execute(
            select(func.max(configuration.c.number)).where(self._here(configuration))
        ).scalar_one()
        row = ConfigurationRow(
            number=(last or 0) + 1, at=at, version=version, written=written, refused=refused
        )
        self._insert(configuration, [values_of(row)])

    def _prune_configurations(self, before: int) -> int:
        """Deletes those before the one that was in force then; returns how many rows."""
        kept = self._connection.execute(_in_force(self._here(configuration), before)).scalar()
        old = configuration.c.number < (kept or 0)
        return self._delete_some(configuration, old, configuration.c.number)


def _in_force(here: ColumnElement[bool], at: int) -> Select[tuple[int]]:
    """Selects the number of the configuration that was in force before a second."""
    return select(func.max(configuration.c.number)).where(
        here, configuration.c.at < at, configuration.c.refused == ""
    )
