"""Allows ``python -m shapleyprio``."""

from shapleyprio.cli import main

main()
