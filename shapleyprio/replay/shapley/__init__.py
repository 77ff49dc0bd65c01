"""Shapley values of coalitions that each run their jobs first come, first served.

While a coalition has more work than processors it is busy in any order, so its value hardly
depends on the order in which it serves its members. That makes a coalition's value one pass over
its members' jobs, without a decision in it and independent of every other coalition.
"""
