"""Runs policies over many windows, deals and logs, and sums up how fair they were."""
