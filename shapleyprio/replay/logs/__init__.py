"""Readers of logs: files of sacct, JSON, SWF, and the daemon's own store."""
