"""Answers from the store: the state of a cluster, and why jobs have their priority."""
