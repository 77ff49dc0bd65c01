"""Replays logs: what happened, what each policy would have made of it, and what was fair."""
