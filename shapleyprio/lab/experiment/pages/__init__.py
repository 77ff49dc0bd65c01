"""The report of an experiment as an HTML page."""
