"""The daemon: account the records, observe the queue, rank the organizations, push."""
