"""A user whom Slurm lets choose any text as account, and what that does to others' jobs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.slurm.port import Malformed
from tests.end_to_end.consortium import GUESTS, MEMBERS, SETTINGS, Consortium, spec
from tests.processes import as_nobody

pytestmark = pytest.mark.real_slurm

Boot = Callable[[ClusterSpec], PrivateSlurm]
CLEARS_THE_SCREEN = "\x1b[2J"


def boot(boot_slurm: Boot, directory: Path, enforce: str) -> Consortium:
    """A consortium on a Slurm that enforces so much, for other users than ours as well."""
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    enforced = SETTINGS | {"AccountingStorageEnforce": enforce}
    cluster = boot_slurm(replace(spec(1), extra=enforced))
    cluster.directory.parent.chmod(0o755)  # nobody reaches slurm.conf and munge there
    cluster.add_accounts(dict.fromkeys((*MEMBERS, GUESTS)))
    consortium = Consortium(cluster, directory)
    consortium.configure()
    return consortium


def allow(consortium: Consortium) -> None:
    text = consortium.config_file.read_text()
    key = "allow_unenforced_accounts = true"
    consortium.config_file.write_text(text.replace("[slurm]", f"[slurm]\n{key}"))


def forge(consortium: Consortium, victim: int) -> subprocess.CompletedProcess[str]:
    """Submits, as a user without any account, a job whose account pretends to be the victim's line.

    It does so with the separator that was once between the fields.
    """
    number = str(victim)
    own = (number, number, "all", "normal", "1", "0", "1800000000", "1", "1:00", "1800000000")
    forged = "\x1f".join(("|".join(own), "gamma", "root", "None", "\n"))
    account = f"x{CLEARS_THE_SCREEN}\n{forged}{number}"
    submit = ["sbatch", "--parsable", f"--account={account}", "--output=/dev/null", "--wrap=true"]
    return as_nobody(consortium.cluster.environment, *submit)


def is_harmless(text: str) -> bool:
    """Whether a terminal shows all of it and obeys none of it."""
    return all(line.isprintable() for line in text.split("\n"))


def test_where_accounts_are_enforced_a_forged_account_is_refused(
    boot_slurm: Boot, tmp_path: Path
) -> None:
    consortium = boot(boot_slurm, tmp_path, "limits")
    assert consortium.slurm.layout().enforces_accounts  # limits imply it
    consortium.occupy()
    victim = consortium.cluster.submit("beta", 60)
    assert "Invalid account" in forge(consortium, victim).stderr
    consortium.until(lambda: consortium.once() == 1, what="the victim's priority")
    assert consortium.waiting()[victim].site_factor == consortium.points()["beta"]


def test_where_accounts_are_not_enforced_nothing_is_written_unless_allowed(
    boot_slurm: Boot, tmp_path: Path
) -> None:
    consortium = boot(boot_slurm, tmp_path, "nosteps")  # there is no word for nothing
    assert not consortium.slurm.layout().enforces_accounts
    consortium.occupy()
    victim = consortium.cluster.submit("beta", 60)
    forged = forge(consortium, victim)
    assert forged.returncode == 0, forged.stderr
    consortium.until(
        lambda: consortium.waiting()[victim].site_factor is not None, what="the victim's factor"
    )

    def accounted() -> bool:
        return any(isinstance(one, Malformed) for one in consortium.slurm.records_of([victim + 1]))

    consortium.until(accounted, what="the forged account in accounting")

    checked = consortium.run("check", "--json")
    errors = [one for one in json.loads(checked.stdout)["findings"] if one["severity"] == "error"]
    assert [one["subject"] for one in errors] == ["AccountingStorageEnforce"]
    assert checked.returncode == 3

    refused = consortium.run("daemon", "--once")
    assert refused.returncode == 3
    assert "AccountingStorageEnforce=associations" in refused.stderr
    assert consortium.cycles()[-1].outcome == "accounts_not_enforced"
    assert consortium.pushes() == []
    assert consortium.waiting()[victim].site_factor == 0

    dry = consortium.run("daemon", "--once", "--dry-run")
    assert dry.returncode == 0
    assert "nothing would be written" in dry.stderr
    assert str(victim) in dry.stdout
    assert consortium.waiting()[victim].site_factor == 0

    allow(consortium)
    assert consortium.once() == 1
    assert [push.organization for push in consortium.pushes()] == ["beta"]
    assert consortium.waiting()[victim].site_factor == consortium.points()["beta"]
    for command in (["status"], ["status", "--json"], ["check"], ["history", "--cycles"]):
        printed = consortium.run(*command)
        assert printed.returncode in {0, 1}, printed.stderr
        assert is_harmless(printed.stdout + printed.stderr), command
    shown = consortium.succeed("status")
    assert "\\x1b[2j" in shown  # Slurm knows accounts in small letters only

    consortium.configure()  # what was written is put back without being allowed
    assert consortium.run("daemon", "--once").returncode == 3
    consortium.succeed("rollback")
    assert consortium.waiting()[victim].site_factor == 0
