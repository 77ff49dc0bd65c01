"""What all packages use: errors, words, whole files, worker processes, database URLs."""
