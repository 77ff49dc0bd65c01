"""All channels, by the names that the configuration gives them."""

from __future__ import annotations

from shapleyprio.slurm.channels.association import AccountPriorities
from shapleyprio.slurm.channels.base import Channel
from shapleyprio.slurm.channels.jobs import Nice, SiteFactor
from shapleyprio.slurm.channels.qos import Qos

CHANNELS: dict[str, Channel] = {
    channel.name: channel for channel in (SiteFactor(), Nice(), Qos(), AccountPriorities())
}
"""Name -> channel, the usual choice first."""
