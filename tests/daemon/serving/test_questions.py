"""Users' questions on real sockets, in front of a simulated Slurm; munge is played."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from shapleyprio.cli.answers import Answers
from shapleyprio.daemon.answering.inquiries import KEPT_SECONDS, Inquiry, InquiryAnswer, RecentQueue
from shapleyprio.daemon.client import ClientSettings, DaemonError, ask, asking, settings_of
from shapleyprio.daemon.serving import Site, questions, site
from shapleyprio.daemon.serving.questions import Askers, Questions
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.slurm.access import Authentication, CommandLineAccess, Rights
from shapleyprio.slurm.port import PendingQueue, SlurmRefusedError, SlurmUnavailableError
from tests.daemon.consortium import NAME, Cluster, Service, brings, config, rank_by_estimate
from tests.daemon.serving.sites import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shapleyprio.config import Config
    from shapleyprio.slurm.port import Slurm

OWNER, OTHER, BOSS, COORDINATOR = "games", "mail", "news", "lp"


class Directory(CommandLineAccess):
    """What Slurm knows of users."""

    def __init__(self) -> None:
        self.known = {
            BOSS: Rights(operator=True),
            COORDINATOR: Rights(coordinates=frozenset({"physics"})),
        }
        self.read: list[str] = []
        self.away = False

    def authentication(self) -> Authentication:
        return Authentication(munge_socket=Path("/m"), slurm_user=None)

    def rights(self, user: str) -> Rights:
        self.read.append(user)
        if self.away:
            raise SlurmUnavailableError("slurmdbd does not answer")
        return self.known.get(user, Rights())

    def account(self, user: str, named: str) -> str:
        self.read.append(user)
        return "biology" if (user, named or "biology") == (OWNER, "biology") else ""


class PlayedMunge:
    """Credentials that say openly whose they are; each is decoded once.

    Attributes:
        user: who makes credentials.
    """

    user = OWNER
    used: set[str] = set()  # noqa: RUF012  # of all that are made for one test
    sockets: set[Path | None] = set()  # noqa: RUF012

    def __init__(self, socket: Path | None = None) -> None:
        self.sockets.add(socket)

    def encode(self, payload: str) -> str:
        return f"{self.user}!{payload}!{len(self.used)}"

    def decode(self, credential: str) -> tuple[int, str]:
        if credential in self.used or credential.count("!") != 2:
            raise SlurmRefusedError("munge refuses the credential (Replayed credential)")
        self.used.add(credential)
        user, payload, _ = credential.split("!")
        return pwd.getpwnam(user).pw_uid, payload


@dataclass
class Asked:
    """A site that answers questions.

    Attributes:
        config: in force.
    """

    service: Service
    config: Config
    site: Site
    directory: Directory
    socket: Path
    port: int
    looks: list[int] = field(default_factory=list)

    def settings(self, way: str) -> ClientSettings:
        url = f"unix:{self.socket}" if way == "socket" else f"http://{HOST}:{self.port}"
        return settings_of(url)

    def explain(self, user: str, value: str, key: str = "job") -> Any:
        PlayedMunge.user = user
        return ask(self.settings("network"), Inquiry("explain", key, value))

    def refusal(self, user: str, value: str, key: str = "job") -> tuple[int, str]:
        with pytest.raises(DaemonError) as caught:
            self.explain(user, value, key)
        return caught.value.exit_code, str(caught.value)

    def raw(self, method: str, target: str, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=20)
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        status, body = answer.status, answer.read()
        connection.close()
        return status, json.loads(body) if body else None


@pytest.fixture
def asked(
    slurm: Cluster, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Asked]:
    """Biology fills the cluster; 2 of the owner's, 3 of the other user's wait, both of physics."""
    slurm.fill("biology")
    slurm.submit("physics", user=OWNER, processing_time=9)
    slurm.submit("physics", user=OTHER, processing_time=9)
    slurm.wait(10)
    service.run()
    PlayedMunge.used.clear()
    monkeypatch.setattr(asking, "Munge", PlayedMunge)
    monkeypatch.setattr(asking, "_munge_socket_of_slurm", lambda: Path("/m"))
    directory, store = Directory(), service.store.cluster(NAME)
    port, path = free_port(), tmp_path / "socket"
    looks: list[int] = []

    class Counted(Cluster):
        def pending(self) -> PendingQueue:
            looks.append(len(looks))
            return slurm.pending()

    def connect(_config: Config) -> Slurm:
        return Counted()

    def made(current: Callable[[], Config]) -> Questions:
        answers = Answers(store, connect, current, lambda _: None)
        return Questions(Askers(directory, PlayedMunge), answers)  # type: ignore[arg-type]

    current = config(
        metrics={"address": f"{HOST}:{port}"},
        service={"socket": str(path)},
    )
    served = Site(Metrics(NAME).registry, store, lambda _: [], made)
    served.open(current)
    yield Asked(service, current, served, directory, path, port, looks)
    served.close()


# -- who gets an answer


def test_the_owner_gets_the_answer_and_nobody_else_without_a_credential(asked: Asked) -> None:
    answer = asked.explain(OWNER, "2")
    assert (answer.value["job"]["user"], answer.value["rank"], answer.code) == (OWNER, 1, 0)
    assert answer.lines[0].startswith("Job 2 of account physics waits with priority ")
    assert asked.raw("GET", "/ask/status?columns=80")[0] == 401
    assert asked.directory.read == []  # what is one's own needs no rights


def test_to_others_a_job_is_one_that_does_not_wait(asked: Asked) -> None:
    seen = asked.refusal(OWNER, "3")
    assert seen[0] == 2
    assert seen[1].startswith(f"user {OWNER} has no pending job 3 (others' jobs are shown")
    assert asked.refusal(OWNER, "99") == (2, seen[1].replace("3", "99"))
    assert asked.directory.read == [OWNER]  # for both, and once in a minute


def test_operators_and_coordinators_see_what_slurm_lets_them_see(asked: Asked) -> None:
    asked.service.slurm.submit("biology", user=OTHER, processing_time=9)
    for user, jobs in ((BOSS, "2 3 4"), (COORDINATOR, "2 3"), ("root", "2 3 4")):
        for job in jobs.split():
            assert asked.explain(user, job).value["job"]["job_id"] == int(job)
    assert asked.refusal(COORDINATOR, "4")[0] == 2
    assert asked.explain(COORDINATOR, "physics", "account").value["account"] == "physics"
    assert asked.refusal(COORDINATOR, "biology", "account")[0] == 2
    assert asked.refusal(OWNER, "physics", "account")[0] == 2
    assert asked.explain(BOSS, "physics", "account").code == 0


def test_a_user_sees_the_own_jobs_and_of_others_numbers_alone(asked: Asked) -> None:
    answer = asked.explain(OWNER, OWNER, "user")
    (jobs,) = answer.value["organizations"]
    assert (jobs["waiting"], jobs["next"]["job_id"]) == (1, 2)
    for one in (answer, asked.explain(OWNER, "2")):
        printed = json.dumps(dict(one.value)) + " ".join(one.lines)
        assert OTHER not in printed
        assert '"job_id": 3' not in printed
    assert asked.refusal(OWNER, OTHER, "user")[0] == 2
    assert asked.explain(BOSS, OTHER, "user").code == 0


def test_status_is_everybodys_but_lines_of_slurm_are_the_operators(asked: Asked) -> None:
    def lines(user: str, way: str = "network") -> str:
        PlayedMunge.user = user
        answer = ask(asked.settings(way), Inquiry("status", "columns", "200"))
        assert answer.value["organizations"][0]["organization"] == "physics"
        return "\n".join(answer.lines)

    PlayedMunge.user = OWNER
    waits = ask(asked.settings("network"), Inquiry("status", "waits", "200"))
    assert "median wait" in "\n".join(waits.lines)
    assert "median wait" not in lines(OWNER)
    asked.service.slurm.unreadable.add(3)
    asked.service.run()
    assert "physics" in lines(OWNER)
    assert "quarantined 1" not in lines(OWNER)
    assert "quarantined 1" in lines(BOSS)
    assert "quarantined 1" in lines("whoever", "socket") or os.geteuid() != 0


def waiting_users(organizations: list[dict[str, Any]]) -> set[str]:
    return {row["user"] for one in organizations for row in one["waiting_work"]["users"]}


def test_who_brings_waiting_work_is_shown_to_those_who_may_see_the_jobs(asked: Asked) -> None:
    def status(user: str) -> InquiryAnswer:
        PlayedMunge.user = user
        return ask(asked.settings("network"), Inquiry("status", "columns", "200"))

    rank_by_estimate(
        asked.service.store,
        brings("zoe", 3, 50, account="biology"),
        brings(OTHER, 2, 30),
        brings(OWNER, 1, 10),
    )
    for user, shown in (
        (OWNER, {OWNER}),
        (COORDINATOR, {OWNER, OTHER}),
        (BOSS, {OWNER, OTHER, "zoe"}),
        ("sys", set()),
    ):
        answer = status(user)
        organizations = answer.value["organizations"]
        assert waiting_users(organizations) == shown
        work = {one["organization"]: one["waiting_work"]["jobs"] for one in organizations}
        assert work == {"physics": 3, "biology": 3}
        text = "\n".join(answer.lines)
        assert {name for name in (OWNER, OTHER, "zoe") if f"{name} " in text} == shown
    asked.directory.away = True
    asked.directory.known.clear()
    PlayedMunge.user = "bin"
    assert waiting_users(status("bin").value["organizations"]) == set()


def test_who_asks_about_the_own_jobs_learns_of_others_work_the_sum(asked: Asked) -> None:
    rank_by_estimate(asked.service.store, brings(OTHER, 2, 30), brings(OWNER, 1, 10))
    for value, key in (("2", "job"), (OWNER, "user")):
        answer = asked.explain(OWNER, value, key)
        assert OTHER not in json.dumps(dict(answer.value))
        assert (
            "3 pending jobs of physics count in the newest estimate, with 40 processor-hours, of "
            f"these 1 job with 10 of user {OWNER}."
        ) in answer.lines
    assert asked.directory.read == []
    named = f"It comes from {OTHER} (30 processor-h), {OWNER} (10 processor-h)."
    for user, value, key in (
        (COORDINATOR, "2", "job"),
        (COORDINATOR, "physics", "account"),
        (BOSS, OWNER, "user"),
    ):
        assert named in asked.explain(user, value, key).lines


def test_while_the_rights_are_not_known_nobody_elses_job_is_shown(asked: Asked) -> None:
    asked.directory.away = True
    assert asked.explain(OWNER, "2").code == 0
    assert asked.refusal(BOSS, "2") == (3, "slurmdbd does not answer")


def test_while_slurm_is_away_only_operators_learn_what_the_store_knows(asked: Asked) -> None:
    asked.service.slurm.take_down("slurmctld")
    assert asked.refusal(OWNER, "2") == (3, "slurmctld does not answer")
    assert "It is not known whether job 2 is still pending" in " ".join(
        asked.explain(BOSS, "2").lines
    )


def test_many_who_ask_look_into_the_queue_once(asked: Asked) -> None:
    for _ in range(5):
        asked.explain(OWNER, "2")
    assert len(asked.looks) == 1


def test_the_queue_is_looked_into_again_after_a_while() -> None:
    slurm, now = Cluster(), [0.0]
    queue = RecentQueue(slurm, clock=lambda: now[0])
    assert queue.pending().jobs == []
    slurm.fill("biology")
    slurm.submit("physics", processing_time=9)
    assert queue.pending().jobs == []
    now[0] = KEPT_SECONDS
    assert len(queue.pending().jobs) == 1
    slurm.take_down("slurmctld")
    now[0] *= 2
    for up in (False, True):
        if up:
            slurm.bring_up("slurmctld")
        with pytest.raises(SlurmUnavailableError):
            queue.pending()


# -- who asks


def test_on_the_socket_the_kernel_says_who_asks(asked: Asked) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    answer = ask(asked.settings("socket"), Inquiry("explain", "job", "2"))  # the daemon's own user
    assert answer.value["job"]["user"] == OWNER
    assert me not in asked.directory.read
    assert oct(asked.socket.stat().st_mode)[-3:] == "666"


def test_the_socket_answers_questions_and_nothing_else(asked: Asked) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(asked.socket))
        one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert one.recv(100).startswith(b"HTTP/1.1 400")


def test_no_header_makes_somebody_else(asked: Asked) -> None:
    target = Inquiry("explain", "job", "2").target
    for name in ("shapleyprio.peer", "Shapleyprio-Peer", "shapleyprio_peer", "Remote-User"):
        assert asked.raw("GET", target, **{name: "0"})[0] == 401


@pytest.mark.parametrize(
    "said",
    [
        "shapleyprio GET /ask/explain?job=3 at {host} {port}",
        "shapleyprio POST /ask/explain?job=2 at {host} {port}",
        "shapleyprio GET /ask/explain?job=2 at {host} 1",
        "shapleyprio GET /ask/explain?job=2 at 10.0.0.1 {port}",
        "",
    ],
)
def test_a_credential_for_something_else_is_refused(asked: Asked, said: str) -> None:
    credential = f"{OWNER}!{said.format(host=HOST, port=asked.port)}!0"
    status, answer = asked.raw("GET", "/ask/explain?job=2", Authorization=f"Munge {credential}")
    assert (status, answer["exit_code"]) == (401, 3)
    assert "for another question or server" in answer["error"]


def test_a_credential_serves_once(asked: Asked) -> None:
    credential = f"{OWNER}!shapleyprio GET /ask/explain?job=2 at {HOST} {asked.port}!0"
    found = [
        asked.raw("GET", "/ask/explain?job=2", Authorization=f"Munge {credential}")[0]
        for _ in range(2)
    ]
    assert found == [200, 401]
    assert PlayedMunge.sockets >= {Path("/m")}


def test_a_number_without_a_name_is_nobody(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlayedMunge, "decode", lambda *_: (2**31 - 7, _payload(asked)))
    code, line = asked.refusal(OWNER, "2")
    assert (code, line) == (3, f"this host has no user with the UID {2**31 - 7}")


def _payload(asked: Asked) -> str:
    return f"shapleyprio GET /ask/explain?job=2 at {HOST} {asked.port}"


# -- what is no question


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("/ask/", "known paths: /ask/explain, /ask/status"),
        ("/ask/rollback?job=2", "known paths: /ask/explain"),
        ("/ask/explain", "one parameter expected: job, user, account"),
        ("/ask/explain?columns=80", "one parameter expected: job, user, account"),
        ("/ask/explain?job=" + "9" * 256, "longer than 255 characters"),
        ("/ask/explain?job=2&pool=gpu", "one parameter expected: job, user, account"),
        ("/ask/status?pool=gpu", "one parameter expected: columns"),
        ("/ask/explain?what_if=60,1", "a time limit of 1 s to 366 days"),
        ("/ask/explain?what_if=0,1,all,", "a time limit of 1 s to 366 days"),
        ("/ask/explain?what_if=60,0,all,", "1 to 2147483647 processors"),
        ("/ask/explain?what_if=60,2147483648,all,", "1 to 2147483647 processors"),
        ("/ask/explain?what_if=31622401,1,all,", "a time limit of 1 s to 366 days"),
        ("/ask/explain?what_if=60,1,,", "one partition"),
        ("/ask/explain?what_if=60,1,all,physics,biology", "at most one account"),
        ("/ask/explain?what_if=60,1,all,&account=physics", "one parameter expected"),
        ("/ask/status?columns=80&pool=" + "g" * 256, "pool is longer than 255 characters"),
        ("/ask/status?columns=0", "a number from 1 to 10000"),
        ("/ask/status?columns=10000000", "a number from 1 to 10000"),
    ],
)
def test_what_is_no_question_is_refused_before_anybody_is_asked(
    asked: Asked, target: str, why: str
) -> None:
    status, answer = asked.raw("GET", target)
    assert (status, answer["exit_code"]) == (400, 2)
    assert why in answer["error"]


def test_two_questions_at_once_are_refused(asked: Asked) -> None:
    assert asked.raw("GET", "/ask/explain?job=2&user=x")[0] == 400


def test_questions_are_put_with_get(asked: Asked) -> None:
    assert asked.raw("POST", "/ask/explain?job=2")[0] == 405
    assert asked.raw("HEAD", "/ask/explain?job=2")[0] == 405


def test_a_defect_is_logged_and_the_next_question_is_answered(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as lines, monkeypatch.context() as patch:
        patch.setattr(PlayedMunge, "decode", lambda *_: 1 // 0)
        assert asked.refusal(OWNER, "2") == (3, "the daemon failed to answer; its log says why")
    assert [line["event"] for line in lines] == ["question failed"]
    assert asked.explain(OWNER, "2").code == 0


def test_who_asks_beside_many_others_is_put_off(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "PATIENCE_SECONDS", 0.1)
    taken = asked.site._questions._turns  # type: ignore[union-attr]
    while taken.acquire(blocking=False):
        pass
    assert "too many questions" in asked.refusal(OWNER, "2")[1]
    taken.release()
    assert asked.explain(OWNER, "2").code == 0


# -- a job that nobody has submitted


def test_where_nothing_is_forecast_one_line_says_so(asked: Asked) -> None:
    for account in ("", "biology"):
        assert asked.refusal(OWNER, f"60,1,all,{account}", "what_if") == (
            3,
            "forecasts are off on this daemon; an administrator can install the package "
            "shapleyprio-replay, or pip install 'shapleyprio[replay]'",
        )


def test_others_accounts_are_not_asked_for(asked: Asked) -> None:
    code, line = asked.refusal(OWNER, "60,1,all,physics", "what_if")
    assert code == 2
    assert line.startswith(f"user {OWNER} may not submit to account physics; see `sacctmgr")
    assert asked.refusal(OWNER, "60,1,all,nothing", "what_if") == (
        code,
        line.replace("physics", "nothing"),
    )
    code, line = asked.refusal(OTHER, "60,1,all,", "what_if")
    assert (code, line) == (2, f"user {OTHER} has no default account; name one with --account")
    for who in (COORDINATOR, BOSS):  # who see its jobs
        assert asked.refusal(who, "60,1,all,physics", "what_if")[0] == 3


# -- where


def test_a_socket_that_a_dead_daemon_left_is_replaced_and_removed_in_the_end(
    asked: Asked, tmp_path: Path
) -> None:
    asked.site.close()
    assert not asked.socket.exists()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(asked.socket))
    left.close()
    asked.site._closed.clear()
    asked.site.open(asked.config)
    assert ask(asked.settings("socket"), Inquiry("status", "columns", "80")).code == 0


def test_the_socket_of_a_daemon_that_lives_is_left_alone(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "RETRY_SECONDS", 0.05)
    other = Site(
        Metrics(NAME).registry,
        asked.service.store.cluster(NAME),
        lambda _: [],
        lambda _: asked.site._questions,  # type: ignore[arg-type, return-value]
    )
    with capture_logs() as lines:
        other.open(asked.config)
        assert {line["key"] for line in lines if "key" in line} == {
            "metrics.address",
            "service.socket",
        }
        assert ask(asked.settings("socket"), Inquiry("status", "columns", "80")).code == 0
        asked.site.close()
        for _ in range(400):
            if other._server is not None and other._local is not None:
                break
            other._closed.wait(0.05)
    assert len([line for line in lines if line.get("key") == "service.socket"]) == 1
    assert ask(asked.settings("socket"), Inquiry("status", "columns", "80")).code == 0
    other.close()
