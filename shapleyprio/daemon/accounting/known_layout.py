"""The cluster's layout, as it was last read, and who holds what in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import structlog

from shapleyprio.config import Config
from shapleyprio.config.membership import Unknown, configured_membership
from shapleyprio.config.segments import Segment
from shapleyprio.daemon.accounting.moves import called
from shapleyprio.daemon.accounting.ownership import Holders, holders_in
from shapleyprio.slurm.layout import Layout
from shapleyprio.slurm.remembering import Source

LAYOUT_SECONDS = 600
"""Nodes, partitions, accounts and weights are reread this often."""

log = structlog.get_logger(__name__)


class KnownLayout:
    """Rereads the layout now and then, and when something in it turns out to be new.

    Args:
        config: who owns accounts and nodes.
        segment: of the cluster, whose nodes alone are shown.

    Attributes:
        read_at: the controller's clock when it was last read; 0 if it is to be read anew.
        sizes: node -> processors in the ledger's weight.
    """

    def __init__(self, config: Config, segment: Segment) -> None:
        self._config = config
        self._segment = segment
        self._layout: Layout | None = None
        self._nodes_of_cluster: Collection[str] = ()
        self._unknown: Collection[Unknown] = ()
        self.read_at = 0
        self.sizes: Mapping[str, int] = {}

    @property
    def layout(self) -> Layout:
        """Slurm's nodes, partitions, accounts and weights, as last read, the segment's alone."""
        assert self._layout is not None, "the layout is read before records are accounted"
        return self._layout

    def holders(self) -> Holders:
        """Returns who holds which nodes and accounts, by the configuration."""
        return holders_in(configured_membership(self._config, self.layout))

    def note_nodes(self, names: Collection[str]) -> None:
        """Has the layout reread by the next cycle if the cluster has other nodes than it says.

        Args:
            names: of all nodes of the cluster, as they are now.
        """
        if names != self._nodes_of_cluster:
            self.forget()

    def forget(self) -> None:
        """Has the layout reread by the next cycle."""
        self.read_at = 0

    def refresh(self, source: Source, now: int) -> None:
        """Reads the layout if that was last done some time ago."""
        if self._layout is None or now - self.read_at >= LAYOUT_SECONDS:
            self.read(source, now)

    def read(self, source: Source, now: int) -> None:
        """Reads the layout.

        Args:
            source: answers what is asked of the whole cluster.
            now: the controller's clock.
        """
        layout = source.layout()
        self._nodes_of_cluster = layout.nodes.keys()
        self._layout = self._segment.layout(layout)
        self.read_at = now
        tres = self._config.fairness.tres
        self.sizes = {name: node.tres.get(tres, 0) for name, node in self._layout.nodes.items()}
        self._log_unknown(layout)

    def _log_unknown(self, layout: Layout) -> None:
        """Logs once, and when it is new, what the configuration names and the cluster lacks."""
        found = configured_membership(self._config, layout).unknown
        for unknown in found:
            if unknown not in self._unknown:
                log.warning(
                    f"Slurm has no {unknown.kind} {unknown.name}",
                    configured_for=called(unknown.organization),
                    did_you_mean=unknown.nearest(layout),
                )
        self._unknown = found
