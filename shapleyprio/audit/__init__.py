"""How fair a recorded schedule was: against what is fair, and against what partners had alone."""
