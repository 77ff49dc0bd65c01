"""The daemon itself: its cycles, their schedule, reloads, metrics and dry runs."""
