"""Whether a schedule serves organizations in their turn, decision by decision."""
