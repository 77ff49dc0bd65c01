"""Dashboards for Grafana and alerts for Prometheus, as code.

``python -m grafana.generate`` writes ``dashboards/*.json``; it needs ``grafana-foundation-sdk``.
"""
