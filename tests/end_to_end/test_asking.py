"""Ordinary users ask the daemon, which runs as a user of its own, about jobs of theirs."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shapleyprio.service.inquiries import Inquiry, payload
from shapleyprio.slurm.access import CommandLineAccess, Rights
from shapleyprio.testbed.cluster import PrivateSlurm
from tests.end_to_end import forked
from tests.end_to_end.consortium import ALL_CPUS, CLUSTER, COMMAND_SECONDS, Consortium

pytestmark = [
    pytest.mark.real_slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users"),
]

SPEED = 1

# users that every Debian has; none of them may read what is root's
OWNER, OTHER, COORDINATOR, OPERATOR, DAEMON = "games", "mail", "lp", "news", "backup"


@dataclass
class Users:
    """A daemon of its own user, and users who ask it.

    Attributes:
        own: job of the owner, of account alpha.
        others: jobs of the other user, of accounts alpha and beta.
    """

    consortium: Consortium
    folder: Path
    own: int = 0
    others: list[int] = field(default_factory=list)
    daemon: Any = None

    @property
    def config(self) -> Path:
        return self.folder / "etc" / "shapleyprio.toml"

    @property
    def socket(self) -> str:
        return f"unix:{self.folder}/run/socket"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.consortium.metrics_port}"

    def environment(self, **more: str) -> dict[str, str]:
        return {**self.consortium._environment(), "SHAPLEYPRIO_CONFIG": str(self.config), **more}

    def ask(self, user: str, *words: str, url: str) -> subprocess.CompletedProcess[str]:
        """A command of that user's, who knows the daemon's address."""
        environment = self.environment()
        del environment["SHAPLEYPRIO_CONFIG"]
        return forked.run([*words, "--url", url], environment, timeout=COMMAND_SECONDS, user=user)

    def as_user(self, user: str, *words: str, stdin: str = "") -> str:
        """What a program prints that a user runs."""
        account = pwd.getpwnam(user)
        done = subprocess.run(
            words,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            cwd="/",
            env=dict(self.consortium.cluster.environment),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=True,
        )
        return done.stdout

    def submit(self, user: str, account: str) -> int:
        words = [f"--account={account}", f"--ntasks={ALL_CPUS}", "--time=10", "--output=/dev/null"]
        return int(self.as_user(user, "sbatch", "--parsable", *words, "--wrap=sleep 60"))

    def credential(self, user: str, said: str) -> str:
        socket = self.consortium.cluster.paths.munge_socket
        return self.as_user(user, "munge", f"--socket={socket}", stdin=said).strip()

    def request(self, target: str, credential: str | None) -> tuple[int, Any]:
        """Status and answer of a request over the network."""
        headers = {} if credential is None else {"Authorization": f"Munge {credential}"}
        port = self.consortium.metrics_port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=COMMAND_SECONDS)
        try:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def users(cluster: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
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
    consortium = Consortium(cluster, tmp_path_factory.mktemp("asking"))
    with tempfile.TemporaryDirectory() as folder:
        users = Users(consortium, Path(folder))
        process = users.daemon = _daemon(users)
        try:
            consortium.occupy()
            users.own = users.submit(OWNER, "alpha")
            users.others = [users.submit(OTHER, "alpha"), users.submit(OTHER, "beta")]

            def steers() -> bool:
                assert process.is_alive(), (consortium.directory / "log").read_text()
                return _points(users) == 3

            consortium.until(steers, what="the daemon to have given points to three jobs")
            # Slurm has the points before the cycle that gave them is recorded
            consortium.until(lambda: _ranked(users), what="the daemon to know the ranks")
            yield users
        finally:
            process.terminate()
            process.join(COMMAND_SECONDS)
            consortium.close()
            cluster.run("scancel", *cluster.run("squeue", "-h", "-o", "%A").split())
            conf.write_text(before)
            cluster.run("scontrol", "reconfigure")
            everybody = f"name={OWNER},{OTHER},{COORDINATOR},{OPERATOR},{DAEMON}"
            consortium.until(lambda: not _waiting(users), what="an empty queue")
            cluster.run("sacctmgr", "-i", "delete", "user", "where", everybody)


def _daemon(users: Users) -> Any:
    """Starts the daemon as packages do: its own user, and nobody else reads what is its own."""
    owner = pwd.getpwnam(DAEMON)
    users.folder.chmod(0o755)
    for name, mode in (("etc", 0o751), ("state", 0o750), ("run", 0o755)):
        (users.folder / name).mkdir()
        (users.folder / name).chmod(mode)
        if name != "etc":
            os.chown(users.folder / name, owner.pw_uid, owner.pw_gid)
    users.consortium.configure(file=users.config)
    text = users.config.read_text()
    text = text.replace(users.consortium.url(), f"sqlite:///{users.folder}/state/store.db")
    text = text.replace("[service]", f'[service]\nsocket = "{users.folder}/run/socket"')
    users.config.write_text(f'[drift]\ninterval = "off"\n{text}')
    os.chown(users.config, 0, owner.pw_gid)
    users.config.chmod(0o640)
    logs = (users.consortium.directory / "out", users.consortium.directory / "log")
    return forked.start(["daemon"], users.environment(), *logs, user=DAEMON)


def _ranked(users: Users) -> bool:
    return "rank 1 of 3" in users.ask(DAEMON, "explain", str(users.own), url=users.socket).stdout


def _points(users: Users) -> int:
    jobs = users.consortium.waiting().values()
    return sum(bool(job.site_factor) for job in jobs)


def _waiting(users: Users) -> str:
    return users.consortium.cluster.run("squeue", "-h").strip()


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
    assert refused.startswith(f"shapleyprio: no job {users.own} of user {OTHER} waits")
    assert "alone" in one_line(users.ask(OTHER, "explain", "--user", OWNER, url=url), 2)
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
    authentication = access.authentication()
    assert authentication.munge_socket == users.consortium.cluster.paths.munge_socket
    assert authentication.slurm_user == os.getuid()


def test_after_stop_and_rollback_nobody_is_led_to_believe_in_the_last_cycle(users: Users) -> None:
    users.daemon.terminate()
    users.daemon.join(COMMAND_SECONDS)
    words = ["explain", str(users.own)]
    for url in (users.socket, users.address):
        line = one_line(users.ask(OWNER, *words, url=url), 3)
        assert "does not answer" in line
        assert "if it is stopped, nobody steers" in line

    def on_the_head_node(*command: str) -> subprocess.CompletedProcess[str]:
        return forked.run(command, users.environment(), timeout=COMMAND_SECONDS, user=DAEMON)

    assert "Nobody steers since" in on_the_head_node("status").stdout
    assert on_the_head_node("rollback").returncode == 0
    done = on_the_head_node(*words)
    assert done.returncode == 1, done.stderr
    assert "Nobody steers since" in done.stdout
    assert "Priorities were put back as they were found at" in done.stdout
    assert re.search(r"But in Slurm its site factor is 0 now, not [0-9]+\.", done.stdout)
    assert on_the_head_node("status").returncode == 1
