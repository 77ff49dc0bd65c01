"""What goes to sacctmgr for association priorities, and what is read of it and of scontrol."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.slurm.command_line.adapter import CommandLineSlurm
from shapleyprio.slurm.command_line.orders import TOO_SLOW
from shapleyprio.slurm.layout import UNSET_PRIORITY, Association, account_priorities
from shapleyprio.slurm.port import Connection, Malformed, SlurmRefusedError, SlurmUnavailableError
from shapleyprio.slurm.text.config import (
    StoredAccount,
    coordinators_line,
    in_force_line,
    stored_account_line,
)

STORED = ("0|root||1", "1|org|300|3", "3|sub||4", "4|below|7|5", "1|other|0|6")


class Sacctmgr:
    """A stand-in for sacctmgr, with what it was called with and fed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "scontrol").write_text(
            "#!/bin/sh\necho Slurmctld is UP\necho ClusterName = c1\n"
        )
        (directory / "scontrol").chmod(0o755)
        self.answer()

    def answer(self, then: str = "", code: int = 0) -> None:
        """Shows STORED, and takes changes: then runs a shell command and exits with the code."""
        fed = shlex.quote(str(self._directory / "fed"))
        lines = " ".join(shlex.quote(line) for line in STORED)
        script = self._directory / "sacctmgr"
        script.write_text(
            f"""#!/bin/sh
case "$*" in
*assoc*) printf '%s\\n' {lines};;
-i) while read -r line; do echo "$line" >> {fed}; echo "sacctmgr: $line"; done
    {then or ":"}
    exit {code};;
esac
"""
        )
        script.chmod(0o755)

    def fed(self) -> list[str]:
        file = self._directory / "fed"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def sacctmgr(tmp_path: Path) -> Sacctmgr:
    return Sacctmgr(tmp_path)


@pytest.fixture
def slurm(sacctmgr: Sacctmgr, tmp_path: Path) -> CommandLineSlurm:
    return CommandLineSlurm(Connection(timeout_seconds=5, bin_directory=tmp_path))


def order(accounts: str, priority: int) -> str:
    return f"modify account where name={accounts} cluster=c1 set priority={priority}"


def test_one_session_has_a_line_for_each_value_and_unsets_from_above(
    sacctmgr: Sacctmgr, slurm: CommandLineSlurm
) -> None:
    unset = dict.fromkeys(("below", "sub", "org"), UNSET_PRIORITY)
    assert slurm.write("association", {"a": 5, "b": 6, "a1": 5, **unset}) == {}
    assert sacctmgr.fed() == [
        *(order("a,a1", 5), order("b", 6)),
        *(order(account, UNSET_PRIORITY) for account in ("org", "sub", "below")),
    ]


def test_no_line_is_longer_than_sacctmgr_reads(sacctmgr: Sacctmgr, slurm: CommandLineSlurm) -> None:
    names = [f"account-{number:04}" for number in range(1000)]
    assert slurm.write("association", dict.fromkeys(names, 5)) == {}
    fed = sacctmgr.fed()
    assert max(map(len, fed)) < 4095
    listed = [line.split("name=")[1].split(" ")[0].split(",") for line in fed]
    assert [name for some in listed for name in some] == names


@pytest.mark.parametrize("name", ["a b", "a,b", "a\nmodify", "a=b", "", "ä", 'a"'])
def test_a_name_that_would_be_read_otherwise_is_never_written(
    sacctmgr: Sacctmgr, slurm: CommandLineSlurm, name: str
) -> None:
    assert slurm.write("association", {name: 5}).keys() == {name}
    assert sacctmgr.fed() == []


@pytest.mark.parametrize("value", [-2, 2**31, 2**32])
def test_a_priority_that_would_become_another_is_never_written(
    sacctmgr: Sacctmgr, slurm: CommandLineSlurm, value: int
) -> None:
    assert slurm.write("association", {"org": value}).keys() == {"org"}
    assert sacctmgr.fed() == []


def test_what_did_not_change_is_refused_with_its_reason(
    sacctmgr: Sacctmgr, slurm: CommandLineSlurm
) -> None:
    sacctmgr.answer("echo 'sacctmgr: error: busy' >&2", 1)
    assert slurm.write("association", {"org": 300, "sub": 9, "gone": 9}) == {
        "sub": "sacctmgr: error: busy",
        "gone": "no such account",
    }


def test_a_denial_names_what_is_missing(sacctmgr: Sacctmgr, slurm: CommandLineSlurm) -> None:
    sacctmgr.answer("echo ' Error with request: Access/permission denied' >&2", 1)
    with pytest.raises(SlurmRefusedError, match="does not let us change account priorities"):
        slurm.write("association", {"org": 5})


def test_a_session_that_hangs_is_ended(sacctmgr: Sacctmgr, tmp_path: Path) -> None:
    sacctmgr.answer("sleep 60")
    slurm = CommandLineSlurm(Connection(timeout_seconds=0.5, bin_directory=tmp_path))
    with pytest.raises(SlurmUnavailableError):
        slurm.write("association", {"org": 5})


def test_a_change_over_which_two_sessions_were_killed_is_refused(
    sacctmgr: Sacctmgr, slurm: CommandLineSlurm, tmp_path: Path
) -> None:
    sessions = shlex.quote(str(tmp_path / "sessions"))
    sacctmgr.answer(f"echo >> {sessions}; test $(wc -l < {sessions}) -gt 2 || exec sleep 60")
    assert slurm.write("association", {"sub": 9}, check=lambda: 1.5) == {"sub": TOO_SLOW}
    assert sacctmgr.fed() == [order("sub", 9)] * 2


def test_accounts_have_their_own_priority_or_that_of_the_nearest_above(
    slurm: CommandLineSlurm,
) -> None:
    found = slurm.account_priorities()
    assert {name: (one.own, one.due, one.stored) for name, one in found.items()} == {
        "root": (None, 0, UNSET_PRIORITY),
        "org": (300, 300, 300),
        "sub": (None, 300, UNSET_PRIORITY),
        "below": (7, 7, 7),
        "other": (0, 0, 0),
    }


def test_accounts_in_a_circle_have_nothing_due() -> None:
    found = account_priorities({"a": None, "b": None}, {"a": "b", "b": "a"})
    assert {one.due for one in found.values()} == {0}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "ClusterName=c1 Account=org UserName= Partition= Priority=300 ID=3",
            (Association("org"), 300),
        ),
        (
            "ClusterName=c1 Account=org UserName=ann(1000) Partition=pa Priority=77 ID=9",
            (Association("org", "ann", "pa"), 77),
        ),
        ("    SharesRaw/Norm/Level/Factor=1/0.20/5/0.00", None),
        ("", None),
    ],
)
def test_what_slurmctld_goes_by_is_read(line: str, expected: object) -> None:
    assert in_force_line(line) == expected


def test_lines_about_accounts_are_read() -> None:
    assert stored_account_line("3|sub||4") == StoredAccount(4, 3, "sub", None)
    assert coordinators_line("org|ann,bob") == ("org", ("ann", "bob"))
    assert coordinators_line("org|") == ("org", ())


@given(st.text())
def test_any_line_is_read_or_malformed(text: str) -> None:
    for line in (text, f"ClusterName={text}", f"1|b||{text}"):
        for read in (stored_account_line, coordinators_line, in_force_line):
            found = read(line)
            if isinstance(found, Malformed):
                assert found.reason
