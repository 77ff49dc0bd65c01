"""Exports: the accounting of a store, and all that gives it meaning, in one file."""
