"""The experiments of three papers, which `shapleyprio.lab.experiment.cells` finds by name.

No other package imports this one.
"""
