"""The configuration: one TOML file, one validated model, and its reference."""

from shapleyprio.config.connecting import connect
from shapleyprio.config.load import ConfigError, load_config
from shapleyprio.config.model import (
    Config,
    ConsortiumSection,
    DriftSection,
    FairnessSection,
    MetricsSection,
    PushSection,
    ServiceSection,
    SlurmSection,
    StoreSection,
)
from shapleyprio.config.organization import Organization
from shapleyprio.config.pool import Pool
from shapleyprio.config.reference import config_reference
from shapleyprio.config.values import Address, socket_path

__all__ = [
    "Address",
    "Config",
    "ConfigError",
    "ConsortiumSection",
    "DriftSection",
    "FairnessSection",
    "MetricsSection",
    "Organization",
    "Pool",
    "PushSection",
    "ServiceSection",
    "SlurmSection",
    "StoreSection",
    "config_reference",
    "connect",
    "load_config",
    "socket_path",
]
