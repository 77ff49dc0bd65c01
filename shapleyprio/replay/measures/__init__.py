"""Measures of schedules: how far from fair, and who went out of turn."""
