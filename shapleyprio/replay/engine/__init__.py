"""The engine, written in C: many coalitions of organizations scheduling the same jobs at once."""
