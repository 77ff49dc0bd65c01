"""The configuration against the live cluster, and a first draft of it."""
