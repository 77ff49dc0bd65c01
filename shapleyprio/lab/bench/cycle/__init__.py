"""The daemon's cycles, with long queues and long pasts."""
