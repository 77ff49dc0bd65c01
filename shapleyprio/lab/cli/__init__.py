"""The commands of the laboratory, one module each; `shapleyprio.cli` finds them by name."""
