"""The limits of 64 bits: checks, before the compiled engine runs, of what it can distinguish."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, isqrt

from shapleyprio.errors import Remedy
from shapleyprio.replay.dealing import MOST_ORGANIZATIONS
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.kernel.running import LARGEST_COUNT
from shapleyprio.replay.kernel.state import NEVER
from shapleyprio.replay.workload import Workload

MOST_REF_ORGANIZATIONS = 18
MOST_RAND_ORGANIZATIONS = 62
"""Coalitions that are sampled are sets of bits in one signed 64-bit number."""

LONGEST_BLOCK = 1024
ERROR = 2**60
"""By how much a rounded key may be wrong; twice that is still below `worth.FAR_APART`."""


def check_range(workload: Workload) -> None:
    """Refuses what would not fit into the 64 bits of utilities, times and counts.

    Raises:
        PolicyError: it does not fit.
    """
    m, length = workload.system_processors, workload.window.length
    if len(workload.organizations) > MOST_ORGANIZATIONS:
        raise PolicyError(
            f"{len(workload.organizations)} organizations; a replay takes {MOST_ORGANIZATIONS} "
            "at most, put some of them together"
        )
    if m > LARGEST_COUNT or len(workload.job) >= 2**31:
        raise PolicyError(
            f"{m} processors and {len(workload.job)} jobs; a replay takes {LARGEST_COUNT} and "
            f"{2**31 - 1} at most",
            Remedy.SHORTER_WINDOW,
        )
    longest = int(workload.processing_time.max())
    if 2 * m * length * (length + 1) >= 2**63 or length + longest >= NEVER:
        raise PolicyError(
            f"{m} processors for {length} s: the utility may exceed 64 bits",
            Remedy.WINDOW_AT_MOST,
            bound=isqrt(2**62 // m) - 1,
        )


def ref_block(workload: Workload) -> int:
    """Returns the seconds of a block in which Ref's rounded keys are near enough to exact ones.

    Beside the exact key modulo 2^64 stands a straight line from the block's begin, which the
    curved value leaves by at most m·s(s+1)/2 within s seconds, times the sum of all weights,
    (k−1)!·(1 + 1/2 + … + 1/(k−1)).

    Raises:
        PolicyError: not even one second is.
    """
    k = len(workload.organizations)
    if k > MOST_REF_ORGANIZATIONS:
        raise PolicyError(
            f"ref keeps a schedule for each of 2^k coalitions, and k = {k} is more than "
            f"{MOST_REF_ORGANIZATIONS}",
            Remedy.SAMPLE,
        )
    weight = factorial(k - 1) * sum((Fraction(1, size) for size in range(1, k)), Fraction(1))
    wanted = max(2**20 >> k, 128)
    return _block(workload, weight, terms=k * (k + 2), wanted=wanted)


def rand_block(workload: Workload, orderings: int) -> int:
    """Returns the same as `ref_block`, for Rand with so many orderings.

    Raises:
        PolicyError: not even one second is, or there are too many organizations.
    """
    k = len(workload.organizations)
    if k > MOST_RAND_ORGANIZATIONS:
        raise PolicyError(
            f"{k} organizations; rand takes {MOST_RAND_ORGANIZATIONS} at most; put some of them "
            "together, or replay other policies, such as shapley"
        )
    weight = Fraction(2 * orderings + 1)
    return _block(workload, weight, terms=2 * orderings + 2, wanted=LONGEST_BLOCK)


def estimated_block(workload: Workload, wanted: int, denominator: int) -> int:
    """Returns the seconds for which keys from an estimate may hold, as wanted if possible.

    Beside the exact key stands a straight line, which the curved key leaves by at most
    m·s(s+1)/2 within s seconds, times the denominator of contributions.
    """
    return max(min(isqrt(ERROR // (denominator * workload.system_processors)), wanted), 1)


def _block(workload: Workload, weight: Fraction, *, terms: int, wanted: int) -> int:
    m, length = workload.system_processors, workload.window.length
    largest = weight * m * length * (length + 1) / 2
    seconds = isqrt(int(2 * ERROR / (weight * m)))
    if largest * (terms + 8) / 2**52 > ERROR or seconds < 2:
        raise PolicyError(
            f"{m} processors for {length} s: with {len(workload.organizations)} organizations "
            "contributions may exceed what can be distinguished exactly",
            Remedy.SHORTER_WINDOW,
        )
    return min(seconds - 1, wanted, LONGEST_BLOCK)
