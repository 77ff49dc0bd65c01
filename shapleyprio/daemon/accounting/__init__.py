"""Slurm's accounting records into the ledger, and who owned what when they ran."""
