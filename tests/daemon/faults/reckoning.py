"""What a life must come to: the literal ledger, whole books, and a way back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.store import PushState
from tests.daemon.faults.cluster import NODES
from tests.daemon.faults.life import NAMES, OPENED
from tests.daemon.faults.literal import literal_standings
from tests.daemon.scripted_accounting import runs_since

if TYPE_CHECKING:
    from shapleyprio.fairness.runs import Run
    from shapleyprio.fairness.tenure import Tenures
    from shapleyprio.store import View
    from tests.daemon.faults.life import Life


def check_everything(life: Life) -> None:
    """Compares what is stored with what happened, then rolls back."""
    store = life.store.open()
    with store.cluster(life.name).reading() as view:
        check_tenures(life, view.ledger.tenures())
        check_runs_and_standings(life, view)
        check_books(life, view)
    check_no_value_twice(life)
    check_in_force(life)
    life.roll_back()
    with store.cluster(life.name).reading() as view:
        check_books(life, view)
    check_in_force(life)
    check_way_back(life)


def check_tenures(life: Life, tenures: Tenures) -> None:
    """Who held what: as configured, from a second on in which a cycle could take that in."""
    for (kind, name), claims in life.claims.items():
        rows = tenures.of(kind, name)
        assert rows[0].since is None
        assert rows[-1].organization == claims[-1][0], (kind, name)
        claimed = iter(claims)
        for row in rows:
            seconds = next((at for who, at in claimed if who == row.organization), None)
            assert seconds is not None, (kind, name, rows, claims)
        attempts = {second for _, seconds in claims for second in seconds}
        assert {row.since for row in rows[1:]} <= attempts, (kind, name, rows, claims)


def check_runs_and_standings(life: Life, view: View) -> None:
    """Every run is stored, but for what is pruned; the ledger has all that ever ran."""
    watermark, tenures = view.ledger.watermark(), view.ledger.tenures()
    assert watermark is not None
    assert watermark.opened == OPENED
    assert watermark.observed_until == life.slurm.clock
    stored = {run.key: (run, allocations) for run, allocations in view.runs.all_runs()}
    literal = [
        _as_split(life, run, stored[run.key][0] if run.key in stored else None)
        for run in runs_since(OPENED, life.slurm.rows().values(), NODES)
    ]
    by_key = {run.key: run for run in literal}
    assert len(by_key) == len(literal), "a step of the clock made two runs alike"
    never = stored.keys() - by_key.keys()
    assert not never, f"stored, but never was: {[stored[key] for key in never]}"
    for key, run in by_key.items():
        if key in stored:
            found, allocations = stored[key]
            assert found == replace(run, counted=found.counted)
            assert allocations == tenures.allocations(run)
        else:
            assert run.end is not None, f"{run} is not stored"
            assert run.end <= watermark.pruned_until, f"{run} is neither stored nor pruned"
    counted = [run for run in literal if not _came_late(life, run, watermark.pruned_until)]
    moves = [row.since for row in tenures if row.since is not None]
    t = watermark.accounted_to
    expected = literal_standings(counted, tenures.holder, moves, NAMES, t, life.horizon)
    rows = {row.organization: row for row in view.history.latest_standings()}
    found_standings = {
        name: type(expected[name])(row.contribution, row.utility, expected[name].parts)
        for name, row in rows.items()
    }
    assert {row.t for row in rows.values()} == {t}
    assert found_standings == expected
    assert sum(standing.balance for standing in expected.values()) == 0


def _came_late(life: Life, run: Run, pruned_until: int) -> bool:
    """Returns whether the clock was set back by more than the horizon before the run began.

    Runs that ended as long ago had been pruned by then, so such a record is left out.
    """
    return run.end is not None and run.end <= life.pruned_before.get(run.key, pruned_until)


def _as_split(life: Life, run: Run, stored: Run | None) -> Run:
    """Returns the run split over its nodes as the controller had said, which no record has."""
    split = stored.processors if stored is not None else life.splits.get(run.key)
    if split is None or split.keys() != run.processors.keys():
        return run
    if sum(split.values()) != sum(run.processors.values()):
        return run
    assert all(processors <= NODES[node] for node, processors in split.items())
    return replace(run, processors=split)


def check_books(life: Life, view: View) -> None:
    """Every write stands in the books, what became of it too, and none was made in vain."""
    pushes = view.pushes.latest(limit=10**6)
    assert [push.number for push in pushes] == list(range(len(pushes), 0, -1))
    planned = [push for push in pushes if push.state is PushState.PLANNED]
    assert planned == []
    written = Counter(
        (write.channel, write.target, write.value)
        for write in life.slurm.writes
        if write.channel == life.channel
    )
    noted = Counter((push.channel, push.target, push.new) for push in pushes)
    assert written <= noted, f"nobody knows of the writes {written - noted}"
    applied = Counter(
        (push.channel, push.target, push.new) for push in pushes if push.state is PushState.APPLIED
    )
    assert applied <= written, f"not written, but noted as applied: {applied - written}"
    tokens = [write.token for write in life.slurm.writes]
    assert tokens == sorted(tokens), "one wrote that had not the lease any more"


def check_no_value_twice(life: Life) -> None:
    """No cycle wrote what stood there already, not even after one that was killed.

    Jobs that wait are touched by what stands there, to make them take their association's priority.
    """
    twice = [
        write for write in life.slurm.writes if write.channel == life.channel and not write.needed
    ]
    assert not twice, f"written, though it stood there: {twice}"


def check_in_force(life: Life) -> None:
    """The controller goes by what accounting has, whichever messages were lost."""
    associations = life.slurm._priorities.associations
    assert associations._heard == associations._own


def check_way_back(life: Life) -> None:
    """After a rollback everything stands as its user or its administrator had it."""
    engine = life.slurm._engine
    if life.channel == "qos":
        assert set(life.slurm.qos_priorities().values()) == {0}
    elif life.channel == "association":
        assert set(life.slurm._priorities.associations._own.values()) == {None}
    else:
        job_field = CHANNELS[life.channel].job_field
        assert job_field is not None
        for job in engine._jobs.values():
            original = (
                0 if life.channel == "site_factor" else life.world.nice[job.array_id or job.job_id]
            )
            assert getattr(job, job_field.attribute) == original, job
