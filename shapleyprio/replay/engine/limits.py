"""The range: chosen before the engine runs, from what its numbers may come to."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, isqrt

from shapleyprio.common.errors import Remedy
from shapleyprio.replay.engine.keys import Block
from shapleyprio.replay.engine.lattice import odd_divisor
from shapleyprio.replay.engine.state import NEVER, numbers_of
from shapleyprio.replay.errors import PolicyError
from shapleyprio.replay.workloads.bays import LARGEST_COUNT
from shapleyprio.replay.workloads.dealing import MOST_ORGANIZATIONS
from shapleyprio.replay.workloads.workload import Workload

LONGEST = 2**38 - 1
"""Seconds of a window, 8,700 years: below it no count of parts exceeds 63 bits."""

LONG_WINDOW = 2**31
"""From so many seconds on 64 bits do not hold the square of a time."""

MOST_REF_ORGANIZATIONS = 20
MOST_REF_ORGANIZATIONS_BY_HORIZON = 18
"""What is younger than the horizon takes memory as well."""

MOST_REF_ORGANIZATIONS_IN_UNIONS = 16
"""Their keys are sums that are made at each choice, of two limbs (`native/owen.h`)."""

MOST_RAND_ORGANIZATIONS = 62
"""Coalitions that are sampled are sets of bits in one signed 64-bit number."""

MOST_ORDERINGS = 1_000_000
"""More take minutes to be drawn, and gigabytes."""

MOST_JOBS_CONFINED = 2**26 - 1
"""So many fit beside a place in what a running job is packed into."""

MOST_NUMBERS_CONFINED = 2**29
"""Most numbers that all coalitions of ref take together: 4 GiB."""

MOST_PIECES = 2**31 - 1
"""Jobs, or copies of jobs where wide ones are started piece by piece."""

LONGEST_BLOCK = 1024
FEWEST_SECONDS = 16
"""Shorter blocks take more time than keys of two limbs do."""

FEWEST_CELLS, LONGEST_CELL = 8, 64
"""Stretches of a block between rough keys (`native/by_second.h`), and seconds of one: in shorter
ones fewer keys are compared exactly, but more rough ones are made."""

ERROR = 2**60
"""By how much a rounded key may be wrong; twice that is below FAR_APART of `native/moments.h`."""

WIDE_ERROR = 2**124
"""The same for keys of two limbs, and FAR_APART_WIDE."""


def check_range(workload: Workload) -> bool:
    """Refuses what would not fit into the 64 bits of times, parts and counts.

    Returns:
        Whether utilities may not fit, so that they need two limbs.

    Raises:
        PolicyError: it does not fit.
    """
    m, length = workload.system_processors, workload.window.length
    if len(workload.organizations) > MOST_ORGANIZATIONS:
        raise PolicyError(
            f"{len(workload.organizations)} organizations; a replay takes {MOST_ORGANIZATIONS} "
            "at most, put some of them together"
        )
    if m > LARGEST_COUNT:
        raise PolicyError(
            f"{m} processors; a replay takes {LARGEST_COUNT} at most", Remedy.NAME_PROCESSORS
        )
    pieces = len(workload.job) if workload.wide == "rigid" else int(workload.processors.sum())
    if pieces > MOST_PIECES:
        raise PolicyError(
            f"the jobs fall into {pieces} pieces that are started one by one; a replay takes "
            f"{MOST_PIECES} at most",
            Remedy.SHORTER_WINDOW,
        )
    if workload.bays is not None and len(workload.job) > MOST_JOBS_CONFINED:
        raise PolicyError(
            f"{len(workload.job)} jobs; a replay that respects partitions takes "
            f"{MOST_JOBS_CONFINED} at most",
            Remedy.SHORTER_WINDOW,
        )
    longest = int(workload.processing_time.max(initial=0))
    if length > LONGEST or length + longest >= NEVER:
        raise PolicyError(
            f"{length} s with jobs of up to {longest} s; a replay takes {LONGEST} s at most",
            Remedy.WINDOW_AT_MOST,
            bound=LONGEST,
        )
    return 2 * _doubled_utility(workload) >= 2**63 or length >= LONG_WINDOW


def _doubled_utility(workload: Workload) -> int:
    """Returns twice what all processors together can be worth at the window's end, at most.

    Each second's parts are worth no more than the horizon. What older ones had been worth without
    it is subtracted modulo 2^64 or 2^128, and need not fit.
    """
    m, length, horizon = workload.system_processors, workload.window.length, workload.saturation
    return m * length * (length + 1 if horizon is None else min(length + 1, 2 * horizon))


def ref_block(workload: Workload) -> Block:
    """Returns the block in which Ref's rounded keys are near enough to exact ones.

    Beside the exact key modulo 2^64 or 2^128 stands a straight line from the block's begin, which
    the curved value leaves by at most m·s(s+1)/2 within s seconds, times the sum of all weights,
    (k−1)!·(1 + 1/2 + … + 1/(k−1)). Keys are divided before they are compared (`lattice`).

    Raises:
        PolicyError: there are too many organizations, or `check_range` refuses the workload.
    """
    k = len(workload.organizations)
    by_horizon = workload.saturation is not None
    most = MOST_REF_ORGANIZATIONS_BY_HORIZON if by_horizon else MOST_REF_ORGANIZATIONS
    if k > most:
        raise PolicyError(
            f"ref keeps a schedule for each of 2^k coalitions, and k = {k} is more than {most}",
            Remedy.SAMPLE,
        )
    if workload.unions is not None and k > MOST_REF_ORGANIZATIONS_IN_UNIONS:
        raise PolicyError(
            f"ref of {k} organizations of which some have a parent takes too long; at most "
            f"{MOST_REF_ORGANIZATIONS_IN_UNIONS} are possible",
            Remedy.SAMPLE,
        )
    if workload.bays is not None and numbers_of(workload.bays) << k > MOST_NUMBERS_CONFINED:
        raise PolicyError(
            f"ref of {k} organizations with {len(workload.bays.partitions)} partitions and "
            f"{len(workload.bays.owned)} bays would take more than 4 GiB; take rand, or leave "
            "--respect-partitions out"
        )
    weight = sum((Fraction(1, size) for size in range(1, k)), Fraction(1))
    divided = weight * factorial(k - 1) / odd_divisor(k)
    wanted, terms = max(2**25 >> k, 128), k * (k + 2)
    block = _block(workload, divided, terms=terms, wanted=wanted)
    cell_bits = min(max(block.seconds // FEWEST_CELLS, 1), LONGEST_CELL).bit_length() - 1
    growth = workload.system_processors * (2 if by_horizon else 1)
    curved = weight * growth * 4**cell_bits / 8
    rounding = weight * _doubled_utility(workload) * (terms + 10) / 2**53
    return block._replace(cell_bits=cell_bits, doubt=float(curved + rounding))


def check_orderings(orderings: int) -> None:
    """Refuses numbers of random orderings that cannot be drawn.

    Raises:
        PolicyError: there are none or too many.
    """
    if orderings < 1:
        raise PolicyError(f"rand with {orderings} orderings; draw at least one")
    if orderings > MOST_ORDERINGS:
        raise PolicyError(
            f"rand with {orderings:,} orderings; at most {MOST_ORDERINGS:,} are possible",
            Remedy.FEWER_ORDERINGS,
        )


def rand_block(workload: Workload, orderings: int) -> Block:
    """Returns the same as `ref_block`, for Rand with so many orderings.

    Raises:
        PolicyError: there are too many organizations, or `check_range` refuses the workload.
    """
    k = len(workload.organizations)
    if k > MOST_RAND_ORGANIZATIONS:
        raise PolicyError(
            f"{k} organizations; rand takes {MOST_RAND_ORGANIZATIONS} at most; put some of them "
            "together, or replay other policies, such as shapley"
        )
    weight = Fraction(2 * orderings + 1) * largest_union(workload)
    return _block(workload, weight, terms=2 * orderings + 2, wanted=LONGEST_BLOCK)


def estimated_block(workload: Workload, wanted: int, denominator: int) -> Block:
    """Returns the block for which keys from an estimate may hold, as long as wanted if possible.

    Beside the exact key stands a straight line, which the curved key leaves by at most
    m·s(s+1)/2 within s seconds, times the denominator of contributions.

    Raises:
        PolicyError: `check_range` refuses the workload.
    """
    wide = check_range(workload)
    error = WIDE_ERROR if wide else ERROR
    weight = denominator * largest_union(workload)
    seconds = isqrt(error // (weight * workload.system_processors))
    return Block(max(min(seconds, wanted), 1), wide)


def largest_union(workload: Workload) -> int:
    """Returns how many keys are added up to one of a union at most."""
    unions = workload.unions
    return 1 if unions is None else max(map(unions.count, unions))


def _block(workload: Workload, weight: Fraction, *, terms: int, wanted: int) -> Block:
    m = workload.system_processors
    wanted = min(wanted, LONGEST_BLOCK)
    largest = weight * _doubled_utility(workload) / 2
    seconds = isqrt(int(2 * ERROR / (weight * m))) - 1
    far = largest * (terms + 10) / 2**52 > ERROR
    wide = check_range(workload) or far or seconds < min(FEWEST_SECONDS, wanted)
    # with two limbs neither bound comes near `WIDE_ERROR`: the largest key is below 2^168
    return Block(wanted if wide else min(seconds, wanted), wide)
