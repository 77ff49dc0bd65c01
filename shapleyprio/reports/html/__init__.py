"""HTML pages, charts and tables of reports, as PDF and pictures too."""
