"""The experiments of three papers, which `shapleyprio.lab.experiment.presets` finds by name.

No other package imports this one.
"""
