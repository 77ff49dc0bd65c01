"""The theory, exact and pure: no I/O, no clock, no randomness of its own."""
