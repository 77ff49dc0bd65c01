"""A whole consortium at work for an hour or two, in a minute or two: `shapleyprio demo`."""
