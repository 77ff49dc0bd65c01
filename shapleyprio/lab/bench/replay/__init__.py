"""Replays and estimates: their speed and memory, beside other simulators."""
