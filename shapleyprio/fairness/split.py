"""How a run's processors are split over its nodes, where only their sum is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def split(total: int, nodes: Sequence[str], sizes: Mapping[str, int]) -> dict[str, int]:
    """Splits processors over nodes in proportion to the nodes' sizes, by largest remainder.

    No node gets more than its size, unless the run holds more than all of them have (a node
    shrank, or Slurm shares its processors). Among equal remainders the first node gets more, so
    that the same arguments always give the same split.

    Args:
        total: processors of the run.
        nodes: that it runs on, at least one.
        sizes: node -> its processors; a node that is not there counts as large as an equal part,
            so that the parts are equal where nothing is known.

    >>> split(132, ["large", "small"], {"large": 128, "small": 4})
    {'large': 128, 'small': 4}
    >>> split(5, ["a", "b", "c"], {})
    {'a': 2, 'b': 2, 'c': 1}
    """
    if len(nodes) == 1:
        return {nodes[0]: total}
    equal = -(-total // len(nodes))
    weights = [sizes.get(node, equal) for node in nodes]
    everything = sum(weights)
    if not everything:
        weights, everything = [1] * len(nodes), len(nodes)
    parts, remainders = zip(
        *(divmod(total * weight, everything) for weight in weights), strict=True
    )
    most = sorted(range(len(nodes)), key=lambda place: -remainders[place])
    more = set(most[: total - sum(parts)])
    return {node: parts[place] + (place in more) for place, node in enumerate(nodes)}
