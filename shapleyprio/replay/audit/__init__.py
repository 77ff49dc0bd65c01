"""The fairness of a recorded schedule, against a fair one and against what partners had alone."""
