"""HTML pages, charts and tables of reports, as pictures too."""
