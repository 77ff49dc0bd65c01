"""The channels: the ways in which a priority gets into Slurm, one class each."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from pkgutil import iter_modules

from shapleyprio.slurm.channels.base import Channel, Claims, PriorityTarget
from shapleyprio.slurm.channels.jobs import SiteFactor

DEFAULT_CHANNEL = SiteFactor.name


def _channels() -> Iterator[Channel]:
    """Yields a channel of each class that the modules beside this one define."""
    for module in iter_modules([str(Path(__file__).parent)]):
        found = import_module(f"{__package__}.{module.name}")
        for item in vars(found).values():
            if (
                isinstance(item, type)
                and issubclass(item, Channel)
                and item.__module__ == found.__name__
                and not isabstract(item)
            ):
                yield item()


CHANNELS: dict[str, Channel] = {
    channel.name: channel
    for channel in sorted(_channels(), key=lambda one: (one.name != DEFAULT_CHANNEL, one.name))
}
"""Name -> channel, the usual choice first."""


__all__ = ["CHANNELS", "DEFAULT_CHANNEL", "Channel", "Claims", "PriorityTarget"]
