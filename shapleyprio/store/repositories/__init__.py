"""The rows of one cluster, a module for each kind: a view that reads them, a writer that writes."""
