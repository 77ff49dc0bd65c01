"""Reports: one self-contained page about a result, and its charts as pictures for slides.

`Page` is what any command fills: a verdict, sections with a chart and its table, and what is
needed to reproduce it. Charts are Vega-Lite specifications made by `charts`; the same ones are
drawn by the page's own script and, without a browser, for pictures. Needs
``pip install 'shapleyprio[report]'``.

>>> from shapleyprio.reports import Choice, Page, Section, Table, colors_of, render
>>> from shapleyprio.reports.html.comparisons import bars
>>> table = Table(headings=("organization", "late, h"), rows=[("physics", 2.0), ("law", -1.0)])
>>> chart = bars(
...     "late",
...     {"organization": ["physics", "law"], "value": [2, -1], "label": ["late", "ahead"]},
...     title="hours",
...     colors=colors_of(["physics", "law"]),
...     choice=None,
... )
>>> page = Page(
...     title="An experiment",
...     verdict="First come, first served is unfair. By 40 s on average.",
...     sections=(Section(title="Unfairness", note="", chart=chart, table=table),),
...     parameters={"seed": "0"},
... )
>>> render(page).count("First come, first served is unfair.")
1
"""

from __future__ import annotations

from shapleyprio.reports.html.encodings import colors_of as colors_of
from shapleyprio.reports.html.page import Choice as Choice
from shapleyprio.reports.html.page import Page as Page
from shapleyprio.reports.html.page import ReportError as ReportError
from shapleyprio.reports.html.page import Section as Section
from shapleyprio.reports.html.page import Table as Table
from shapleyprio.reports.html.writing import render as render
from shapleyprio.reports.html.writing import write_page as write_page
from shapleyprio.reports.html.writing import write_pictures as write_pictures
