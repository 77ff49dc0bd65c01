"""Prints the reference of the configuration: ``python -m shapleyprio.config``."""

from shapleyprio.config import config_reference

print(config_reference(), end="")
