"""Shapley values of a game that grows: who brings which jobs and which processors.

Coalitions decide as under Ref (`ways`) while that is affordable. Else they run first come,
first served (`first_come`): while a coalition has more work than processors it is busy in any
order, so its value hardly depends on whom it serves first. That makes a value one pass over the
members' jobs, without a decision in it and independent of every other coalition, so that few
coalitions can do for many organizations (`contributions`, `fluid`).
"""
