"""Forecasts of when waiting jobs will start, from futures that the engine plays."""
