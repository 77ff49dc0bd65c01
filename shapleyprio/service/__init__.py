"""The daemon: observe Slurm, account the records, rank the organizations, push, publish."""
