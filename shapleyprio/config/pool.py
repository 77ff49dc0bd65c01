"""The keys of a pool of clusters in the configuration file."""

from __future__ import annotations

from shapleyprio.config.section import ConfigSection, key
from shapleyprio.config.values import Names, OrganizationName


class Pool(ConfigSection):
    """[[pool]]."""

    name: OrganizationName = key(
        ...,
        "Name of the pool, the same at all its clusters. Under another name it is another pool, "
        "which starts from zero.",
        "all",
    )
    clusters: Names = key(
        ...,
        "ClusterNames of its clusters. One that is added counts from its first cycle in the pool "
        "on; of one that is taken out what was earned in the pool counts as it stood then.",
        ["c1", "c2"],
    )
