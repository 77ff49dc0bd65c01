"""What is read of `sacctmgr dump` and `sacctmgr show qos`, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shapleyprio.lab.rehearsal.site import read_associations, read_qos, read_site
from shapleyprio.lab.rehearsal.site_files import SiteError
from tests.lab.rehearsal.site_files import DUMP, write_site


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_site(tmp_path)
    return tmp_path


def test_the_tree_of_accounts_has_its_shares_and_limits(folder: Path) -> None:
    found = read_associations(folder / "dump")
    assert dict(found.parents) == {"science": None, "biology": None, "physics": "science"}
    assert dict(found.accounts["science"]) == {"Fairshare": "60"}
    assert dict(found.accounts["biology"]) == {"Fairshare": "40", "GrpTRES": "cpu=6,gres/gpu=2"}
    assert dict(found.accounts["physics"]) == {"Fairshare": "parent"}
    assert dict(found.users["physics", "ann"]) == {"Fairshare": "3", "MaxJobs": "4"}
    assert set(found.left_out) == {"GrpTRESMins of accounts"}


def test_what_users_have_in_one_partition_is_left_out(folder: Path) -> None:
    ann = "User - 'ann':Partition='long':DefaultAccount='physics':Fairshare=33:MaxJobs=1\n"
    for before, behind in ((ann, ""), ("", ann)):
        text = DUMP.replace("User - 'ann'", f"{before}User - 'ann'")
        (folder / "dump").write_text(text + behind)
        found = read_associations(folder / "dump")
        assert dict(found.users["physics", "ann"]) == {"Fairshare": "3", "MaxJobs": "4"}
        assert "Partition of users" in found.left_out


def test_qos_have_their_limits_and_what_refuses_jobs_is_left_out(folder: Path) -> None:
    found = read_qos(folder / "qos")
    assert dict(found.options["low"]) == {
        "Priority": "10",
        "GraceTime": "00:00:30",
        "UsageFactor": "0.500000",
        "GrpTRES": "cpu=12,gres/gpu=1",
        "MaxJobsPerAccount": "3",
        "Flags": "NoReserve",
    }
    assert found.options["high"]["MaxTRESPerAccount"] == "cpu=4,node=2"
    assert found.options["high"]["PreemptMode"] == "requeue"
    assert dict(found.preempted) == {"normal": (), "low": (), "high": ("low", "normal")}
    assert set(found.left_out) == {"MaxTRESPA of QOS"}


def test_without_these_files_it_is_said_what_is_missing(folder: Path) -> None:
    bare = read_site(folder / "slurm.conf", None, None)
    whole = read_site(folder / "slurm.conf", folder / "dump", folder / "qos")
    assert {"associations", "QOS"} <= set(bare.left_out)
    assert not {"associations", "QOS"} & set(whole.left_out)
    assert "SchedulerParameters=frobnicate" in whole.left_out


DUMPS = {
    "something else": ("hello\n", ":1: 'hello' is not a line of `sacctmgr dump CLUSTER`"),
    "nothing": ("# nothing\n", ": has no account"),
    "an orphan": ("Parent - 'a'\n", ":1: Parent: account 'a' has no line above"),
    "a loop": (
        "Parent - 'root'\nAccount - 'a'\nParent - 'a'\nAccount - 'a'\n",
        ":4: Account: a already has a line",
    ),
    "a strange name": ("Account - 'a b;c'\n", ":1: Account: 'a b;c' is not an account name"),
    "a strange limit": ("Account - 'a':GrpTRES=cpu=1 node=2\n", ":1: GrpTRES: "),
    "a strange option": ("Account - 'a':x\n", ":1: ':x' is not :KEY=VALUE"),
    "a quote that never ends": ("Account - 'a':Description='x\n", ":1: "),
}  # fmt: skip


@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_that_cannot_be_right_is_refused(tmp_path: Path, name: str) -> None:
    text, message = DUMPS[name]
    assert message in refused(read_associations, tmp_path / "dump", text)


def refused(read: Callable[[Path], object], file: Path, text: str) -> str:
    """The one line by which a file with that text is refused."""
    file.write_text(text)
    with pytest.raises(SiteError) as caught:
        read(file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


QOS = {
    "nothing": ("", ":1: does not name columns"),
    "what people read": ("      Name   Priority\n---------- ----------\n", ":1: does not name"),
    "a short line": ("Name|Priority|Flags\nlow|1\n", ":2: 2 fields instead of 3"),
    "a strange name": ("Name|Priority\na b|1\n", ":2: Name: 'a b' is not a QOS name"),
    "an option of sacctmgr": ("Name|Priority\nlow|1 where name=x\n", ":2: Priority: "),
    "one twice": ("Name|Priority\nlow|1\nlow|2\n", ":3: Name: low already has a line above"),
    "one that is not there": ("Name|Priority|Preempt\nlow|1|x\n", ": Preempt: low names 'x'"),
}


@pytest.mark.parametrize("name", QOS)
def test_qos_that_cannot_be_right_are_refused(tmp_path: Path, name: str) -> None:
    text, message = QOS[name]
    assert message in refused(read_qos, tmp_path / "qos", text)
