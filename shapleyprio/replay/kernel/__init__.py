"""The compiled engine: many coalitions of organizations scheduling the same jobs at once."""
