"""The channels: the ways in which a priority gets into Slurm, one class each."""

from shapleyprio.slurm.channels.base import Channel, Claims, PriorityTarget
from shapleyprio.slurm.channels.registry import CHANNELS, DEFAULT_CHANNEL

__all__ = ["CHANNELS", "DEFAULT_CHANNEL", "Channel", "Claims", "PriorityTarget"]
