"""Ordinary users ask the daemon, which runs as a user of its own, about jobs of theirs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shapleyprio.daemon.answering.inquiries import Inquiry, payload
from shapleyprio.lab.testbed.cluster import PrivateSlurm
from shapleyprio.slurm.access import CommandLineAccess, Rights
from tests.end_to_end import forked
from tests.end_to_end.consortium import CLUSTER, COMMAND_SECONDS, NewStore
from tests.end_to_end.ledgers import like_one_read_afresh
from tests.end_to_end.users import COORDINATOR, DAEMON, OPERATOR, OTHER, OWNER, RANKED, Users

pytestmark = [
    pytest.mark.real_slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users"),
]

SPEED = 1


@pytest.fixture(scope="module")
def users(cluster: PrivateSlurm, new_store: NewStore) -> Iterator[Users]:
    """The daemon runs; jobs of two users wait, and Slurm shows nobody the other's."""
    conf = cluster.paths.slurm_conf
    cluster.directory.parent.chmod(0o711)  # the rest of it everybody may read already
    before = conf.read_text()
    conf.write_text(f"{before}PrivateData=jobs\n")
    cluster.run("scontrol", "reconfigure")
    tail = f"cluster={CLUSTER}"
    for user in (OWNER, OTHER):
        cluster.run("sacctmgr", "-i", "add", "user", user, "account=alpha,beta", tail)
    cluster.run("sacctmgr", "-i", "add", "user", COORDINATOR, "account=gamma", tail)
    cluster.run("sacctmgr", "-i", "add", "coordinator", "account=alpha", f"names={COORDINATOR}")
    for user in (OPERATOR, DAEMON):
        cluster.run(
            "sacctmgr", "-i", "add", "user", user, "account=gamma", "adminlevel=Operator", tail
        )
    with tempfile.TemporaryDirectory() as folder:
        users = Users(cluster, Path(folder), new_store())
        users.configure()
        users.start()
        try:
            users.occupy()
            users.await_ranks()
            yield users
        finally:
            users.stop()
            users.consortium.close()
            _end_all_jobs(users)
            conf.write_text(before)
            cluster.run("scontrol", "reconfigure")
            everybody = f"name={OWNER},{OTHER},{COORDINATOR},{OPERATOR},{DAEMON}"
            cluster.run("sacctmgr", "-i", "delete", "user", "where", everybody)


def _end_all_jobs(users: Users) -> None:
    cluster = users.consortium.cluster
    cluster.run("scancel", *cluster.run("squeue", "-h", "-o", "%A").split())
    empty = "an empty queue"
    users.consortium.until(lambda: not cluster.run("squeue", "-h").strip(), what=empty)


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    """What a command that fails says."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("way", ["socket", "address"])
def test_the_owner_gets_the_answer_and_nothing_of_others(users: Users, way: str) -> None:
    url = getattr(users, way)
    done = users.ask(OWNER, "explain", str(users.own), url=url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Job {users.own} of account alpha waits with priority ")
    assert "rank 1 of 3" in done.stdout
    whole = json.loads(users.ask(OWNER, "explain", str(users.own), "--json", url=url).stdout)
    assert whole["job"]["user"] == OWNER
    for words in (["explain", str(users.own)], ["explain", "--user", OWNER], ["status"]):
        for format_ in ([], ["--json"]):
            printed = users.ask(OWNER, *words, *format_, url=url).stdout
            assert printed
            jobs = "|".join(map(str, users.others))
            assert not re.search(rf'(?:[Jj]ob|"(?:job_id|label|target)":) "?(?:{jobs})\b', printed)
            assert OTHER not in printed
    assert OTHER not in users.as_user(OWNER, "squeue", "-h", "-a", "-o", "%u")


@pytest.mark.parametrize("way", ["socket", "address"])
def test_another_user_does_not_even_learn_that_there_is_such_a_job(users: Users, way: str) -> None:
    url = getattr(users, way)
    (refused, unknown) = (
        one_line(users.ask(OTHER, "explain", job, url=url), 2)
        for job in (str(users.own), "4000000")
    )
    assert refused.replace(str(users.own), "4000000") == unknown
    assert refused.startswith(f"shapleyprio: user {OTHER} has no pending job {users.own}")
    assert "only" in one_line(users.ask(OTHER, "explain", "--user", OWNER, url=url), 2)
    assert "coordinators" in one_line(users.ask(OTHER, "explain", "-A", "alpha", url=url), 2)


@pytest.mark.parametrize("way", ["socket", "address"])
def test_coordinators_and_operators_get_the_answers_that_slurm_would_give_them(
    users: Users, way: str
) -> None:
    url = getattr(users, way)
    for user in (COORDINATOR, OPERATOR, DAEMON, "root"):
        done = users.ask(user, "explain", str(users.own), url=url)
        assert done.stdout.startswith(f"Job {users.own} of account alpha waits"), done.stderr
        assert users.ask(user, "explain", "--account", "alpha", url=url).returncode == 0
    of_beta = str(users.others[1])
    one_line(users.ask(COORDINATOR, "explain", of_beta, url=url), 2)
    assert users.ask(OPERATOR, "explain", of_beta, url=url).returncode == 0
    assert users.ask(OPERATOR, "explain", "--user", OWNER, url=url).returncode == 0


@pytest.mark.parametrize("way", ["socket", "address"])
def test_users_ask_about_jobs_to_come_for_their_accounts_alone(users: Users, way: str) -> None:
    """The daemon's user may not run the worker in every checkout: what is forecast is left out."""
    what_if = ("explain", "--what-if", "--time", "10", "--processors", "2", "--partition")
    url = getattr(users, way)
    nowhere = users.ask(OWNER, *what_if, "nowhere", url=url)
    forecasts = "forecasts are off on this daemon" not in nowhere.stderr
    of_theirs = (2, "partition nowhere has no") if forecasts else (3, "forecasts are off")
    assert of_theirs[1] in one_line(nowhere, of_theirs[0])
    for user, account, is_theirs in (
        (OWNER, "beta", True),
        (OWNER, "gamma", False),
        (OWNER, "no-such", False),
        (COORDINATOR, "alpha", True),
        (COORDINATOR, "beta", False),
        (OPERATOR, "beta", True),
    ):
        done = users.ask(user, *what_if, "nowhere", "--account", account, url=url)
        code, said = of_theirs if is_theirs else (2, f"may not submit to account {account};")
        assert said in one_line(done, code)
    if forecasts:
        too_many = (*what_if, "alpha", "--processors", "2000000000")
        line = one_line(users.ask(OWNER, *too_many, url=url), 2)
        assert "are more than partition alpha has now" in line


def test_a_credential_serves_once_for_its_question_at_its_server(users: Users) -> None:
    question, another = (Inquiry("explain", "job", str(job)) for job in (users.own, 4000000))
    port = users.consortium.metrics_port
    said = payload("GET", question.target, "127.0.0.1", port)
    credential = users.credential(OWNER, said)
    assert users.request(question.target, credential)[0] == 200
    status, answer = users.request(question.target, credential)
    assert (status, answer["exit_code"]) == (401, 3)
    assert "replayed" in answer["error"].casefold()
    for wrong in (
        payload("GET", another.target, "127.0.0.1", port),
        payload("GET", question.target, "127.0.0.1", port + 1),
        payload("POST", question.target, "127.0.0.1", port),
        "",
    ):
        status, answer = users.request(question.target, users.credential(OWNER, wrong))
        assert (status, answer["exit_code"]) == (401, 3)
        assert "for another question or server" in answer["error"]


def test_who_proves_nothing_gets_nothing(users: Users) -> None:
    target = Inquiry("explain", "job", str(users.own)).target
    for credential in (None, "MUNGE:AwQDAAB=:", "x" * 10_000):
        status, answer = users.request(target, credential)
        assert (status, answer.keys()) == (401, {"error", "exit_code"})
    with pytest.raises(ConnectionError):  # headers that long are not read
        users.request(target, "x" * 60_000)


def test_neither_configuration_nor_store_is_theirs_to_read(users: Users) -> None:
    words = ["explain", str(users.own)]
    done = forked.run(words, users.environment(), timeout=COMMAND_SECONDS, user=OWNER)
    assert "cannot be read" in one_line(done, 2)


def test_without_munge_or_daemon_one_line_says_so(users: Users) -> None:
    words = ["explain", str(users.own)]
    environment = users.environment(SLURM_CONF="/nonexistent", PATH="/nonexistent")
    del environment["SHAPLEYPRIO_CONFIG"]
    for url, line in (
        (users.address, "munge cannot be run on this host"),
        ("unix:/nonexistent/socket", "the daemon at unix:/nonexistent/socket does not answer"),
    ):
        words = ["explain", str(users.own), "--url", url]
        done = forked.run(words, environment, timeout=COMMAND_SECONDS, user=OWNER)
        assert line in one_line(done, 3)


def test_rights_are_read_of_the_user_alone(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in users.consortium.cluster.environment.items():
        monkeypatch.setenv(name, value)
    access = CommandLineAccess(timeout_seconds=COMMAND_SECONDS)
    assert access.rights(OWNER) == access.rights("nobody-at-all") == Rights()
    assert access.rights(OPERATOR) == Rights(operator=True)
    found = access.rights(COORDINATOR)
    assert found == Rights(coordinates=frozenset({"alpha", "alpha-lab", "alpha-desk"}))
    for user, named, account in (
        (OWNER, "", "alpha"),
        (OWNER, "beta", "beta"),
        (OWNER, "gamma", ""),
        (OWNER, "no-such", ""),
        (OWNER, "beta where user=" + OTHER, ""),
        ("nobody-at-all", "", ""),
        ("nobody-at-all", "beta", ""),
    ):
        assert access.account(user, named) == account, (user, named)
    authentication = access.authentication()
    assert authentication.munge_socket == users.consortium.cluster.paths.munge_socket
    assert authentication.slurm_user == os.getuid()


def test_from_the_first_dry_run_to_a_users_question_and_the_report_of_the_month(
    users: Users, new_store: NewStore
) -> None:
    """A journey of an admin, a user and a board, on a Slurm that knows nothing of us."""
    users.stop()
    assert users.on_the_head_node("rollback").returncode == 0
    _end_all_jobs(users)
    (users.folder / "journey").mkdir()
    site = Users(users.consortium.cluster, users.folder / "journey", new_store())
    _end_work_of_both(site)
    site.occupy()

    _try_out(site)
    try:
        _start_and_ask(site)
        _ask_what_another_configuration_would_change(site)
        _correct_who_owned_what(site)
    finally:
        site.stop()
    _stop_and_roll_back(site)
    _report_the_month(site)


def _end_work_of_both(site: Users) -> None:
    """A job of each user's, so that there is something to count."""
    site.submit(OWNER, "alpha", seconds=3)
    site.submit(OTHER, "beta", seconds=2)


def succeeds(done: subprocess.CompletedProcess[str]) -> str:
    """What a command prints that succeeds."""
    assert done.returncode == 0, done.stderr
    return done.stdout


def _try_out(site: Users) -> None:
    """A first dry run with a mistake, which leaves no trace, and one without."""
    forgotten = [('accounts = ["alpha"]', ""), ('partitions = ["alpha"]', "")]
    dry_run = ("daemon", "--once", "--dry-run")
    site.configure(*forgotten)
    shown = succeeds(site.on_the_head_node(*dry_run))
    assert "organization alpha owns no node and no account" in shown
    site.configure()
    shown = succeeds(site.on_the_head_node(*dry_run))
    assert "owns no" not in shown
    assert "3 writes; --verbose lists them" in shown
    assert not site.consortium.has_store()
    assert not any(job.site_factor for job in site.consortium.waiting().values())


def _start_and_ask(site: Users) -> None:
    """The real start says what counts; a user asks by munge, and gets no answer about others."""
    site.start()
    site.await_ranks()
    log = site.log()
    assert "a new ledger is open" in log
    assert "shapleyprio ownership recount --since DATE" in log
    answer = succeeds(site.ask(OWNER, "explain", str(site.own), url=site.address))
    assert answer.startswith(f"Job {site.own} of account alpha waits with priority ")
    assert RANKED.search(answer)
    refused = one_line(site.ask(OTHER, "explain", str(site.own), url=site.address), 2)
    assert refused.startswith(f"shapleyprio: user {OTHER} has no pending job {site.own}")


def _ask_what_another_configuration_would_change(site: Users) -> None:
    """Beside the daemon, which goes on by its own."""
    given_away = [
        ('partitions = ["alpha"]', ""),
        ('partitions = ["beta"]', 'partitions = ["alpha", "beta"]'),
    ]
    dry_run = ("daemon", "--once", "--dry-run", "--config")
    misspelt = str(site.configure(("[push]", "[pusch]"), name="misspelt.toml"))
    assert "pusch" in one_line(site.on_the_head_node(*dry_run, misspelt), 2)
    new = str(site.configure(*given_away, name="new.toml"))
    shown = succeeds(site.on_the_head_node(*dry_run, new))
    assert "node a1: alpha → beta from now on" in shown
    assert "against the last cycle in the store" in shown
    site.consortium.await_cycles()
    assert holders_of_a1(site) == ["alpha"]


def holders_of_a1(site: Users) -> list[str]:
    tenures = json.loads(succeeds(site.on_the_head_node("ownership", "--json")))["tenures"]
    return [one["organization"] for one in tenures if one["name"] == "a1"]


def _correct_who_owned_what(site: Users) -> None:
    """Not beside the daemon; then exactly, there and back."""
    always = ("--since", "always")
    give = ("ownership", "set", "a1", "beta", *always)
    recount = ("ownership", "recount", *always)
    assert "nothing is changed yet" in succeeds(site.on_the_head_node(*give))
    for correction in (give, recount):
        assert "stop it first" in one_line(site.on_the_head_node(*correction, "--yes"), 6)
    site.stop()
    assert not site.is_steered()
    site.consortium.await_settled()

    ledger, t = like_one_read_afresh(site.consortium)
    standings = ledger.standings(t, ("alpha", "beta"))
    assert min(min(one.contribution, one.utility) for one in standings.values()) > 0
    assert "recorded as correction 1" in succeeds(site.on_the_head_node(*give, "--yes"))
    assert holders_of_a1(site) == ["beta"]
    like_one_read_afresh(site.consortium, site.folder / "etc" / "new.toml")
    assert "recorded as correction 2" in succeeds(site.on_the_head_node(*recount, "--yes"))
    assert holders_of_a1(site) == ["alpha"]
    again, t = like_one_read_afresh(site.consortium)
    assert again.standings(t, ("alpha", "beta")) == standings
    assert "correction 2, " in succeeds(site.on_the_head_node("ownership"))


def _stop_and_roll_back(site: Users) -> None:
    """Nobody is led to believe in the last cycle."""
    explain = ("explain", str(site.own))
    for url in (site.socket, site.address):
        line = one_line(site.ask(OWNER, *explain, url=url), 3)
        assert "does not answer" in line
        assert "if it is stopped, no daemon steers" in line
    assert "No daemon has run since" in site.on_the_head_node("status").stdout
    assert "3 priorities put back" in succeeds(site.on_the_head_node("rollback"))
    done = site.on_the_head_node(*explain)
    assert done.returncode == 1, done.stderr
    assert "No daemon has run since" in done.stdout
    assert "Priorities were rolled back at" in done.stdout
    assert re.search(r"But in Slurm its site factor is 0 now, not [0-9]+\.", done.stdout)
    assert site.on_the_head_node("status").returncode == 1


def _report_the_month(site: Users) -> None:
    """Of the month in which the daemon's store was last brought up to date."""
    with site.consortium.reading() as view:
        watermark = view.ledger.watermark()
    assert watermark is not None
    month = datetime.fromtimestamp(watermark.accounted_to, UTC).strftime("%Y-%m")
    directory = site.folder / "reports"
    # a report asks no Slurm
    environment = site.environment(PATH="/nonexistent")
    words = ["report", "--month", month, "--output", str(directory)]
    printed = succeeds(forked.run(words, environment, timeout=COMMAND_SECONDS))
    name = f"{CLUSTER}-{month}"
    assert printed.splitlines()[-2:] == [f"{directory}/{name}.{end}" for end in ("html", "json")]
    assert "Of this month the store holds only " in printed
    assert "What to keep in mind" in (directory / f"{name}.html").read_text()
    organizations = json.loads((directory / f"{name}.json").read_text())["organizations"]
    assert [one["jobs"] for one in organizations] == [1, 1, 0]
