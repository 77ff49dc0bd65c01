"""The experiments of CloudShare (CCGrid 2019), section 5, repeated.

From each log periods of 24 hours are taken at random. A job of q processors and p hours becomes
q·⌈p⌉ units of one processor and one hour, all released when the job was. Five organizations share
their processors; every algorithm is simulated in all 2^5 − 1 coalitions. A coalition's value is
the total wait of its members' units, from release to start, until all have started; the Shapley
value of these is the fair vector of waits, and an algorithm's unfairness the distance of the
waits in the coalition of all from it. An algorithm scores a point for each rival that is less
fair in the same setting.
"""

from __future__ import annotations

from shapleyprio.lab.papers.cloudshare.preset import cloudshare_2019

__all__ = ["cloudshare_2019"]
