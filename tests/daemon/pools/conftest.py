"""Two clusters in one pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.daemon.pools.test_pools import Site, in_pool

if TYPE_CHECKING:
    from shapleyprio.store import Store


@pytest.fixture
def sites(store: Store) -> list[Site]:
    """Both clusters, in the pool since their first cycle."""
    both = [Site(name, store, in_pool("c1", "c2")) for name in ("c1", "c2")]
    for site in both:
        site.run()
    return both
