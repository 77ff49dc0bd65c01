"""Attacks on the passwords in the configuration: where could somebody read one?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError

from shapleyprio.cli import main
from shapleyprio.common.databases import secrets_of, without_password
from shapleyprio.common.errors import ConfigError
from shapleyprio.config import load_config
from shapleyprio.daemon.estimation.messages import EstimateRequest, WorkResult
from shapleyprio.daemon.estimation.worker import STORE, WORKER, EstimationWorker
from shapleyprio.daemon.steering.metrics import Metrics
from shapleyprio.lab.experiment.general import label_of
from shapleyprio.store import Store, StoreError
from shapleyprio.store.engine import make_engine
from shapleyprio.store.errors import store_errors
from tests.daemon.consortium import NAME
from tests.daemon.serving.sites import Served, free_port
from tests.processes import as_nobody

SECRETS = ("Xsecret1X", "Xsecret2X", "Xsecret3X", "Xsecret4X")
ONE, TWO, THREE, FOUR = SECRETS
AWAY = [
    f"postgresql://fair:{ONE}@127.0.0.1:{{port}}/fair?sslpassword={TWO}&sslrootcert={THREE}",
    f"mysql://127.0.0.1:{{port}}/fair?password={ONE}&user={TWO}&ssl_key_password={THREE}",
]
"""URLs of servers where nothing listens, as people type them."""

TORN = f"postgresql://fair:X@{ONE}@127.0.0.1:{{port}}/fair"
"""The rest of the password passes for a part of the host's name."""

ORGANIZATION = '[[organization]]\nname = "physics"\naccounts = ["physics"]\n'


def shown(text: str) -> list[str]:
    """The secrets that can be read."""
    return [secret for secret in SECRETS if secret in text]


@pytest.fixture(params=AWAY, ids=["postgresql", "mysql"])
def away(request: pytest.FixtureRequest) -> str:
    url: str = request.param
    return url.format(port=free_port())


@pytest.mark.parametrize(
    ("command", "scheme"),
    [
        ("status", 0),
        ("history --json", 1),
        ("db upgrade", 0),
        ("replay {url} --json", 1),
        ("replay {url} --format swf", 0),
        ("audit {url}", 0),
        ("experiment {url} --windows 1", 1),
        ("status", 2),
        ("replay {url}", 2),
    ],
)
def test_read_a_database_password_on_a_terminal_or_in_a_log(
    command: str, scheme: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    away = [*AWAY, TORN][scheme].format(port=free_port())
    words = command.format(url=away).split()
    file = tmp_path / "shapleyprio.toml"
    file.write_text(f'[slurm]\ncluster = "c1"\n[store]\nurl = "{away}"\n{ORGANIZATION}')
    file.chmod(0o600)
    done = CliRunner(env={"SHAPLEYPRIO_CONFIG": str(file)}).invoke(main, words)
    assert done.exit_code > 1, done.exception
    assert shown(done.output + "".join(capfd.readouterr())) == []


def test_read_a_database_password_on_the_page(away: str) -> None:
    try:
        store = Store(make_engine(away))
    except StoreError as error:  # the driver is missing: nothing is served at all
        pytest.skip(str(error))
    served = Served(Metrics(NAME), store, free_port(), [])
    served.open()
    try:
        for path in ("/", "/api/status"):
            answer = served.ask(path)
            assert answer.status == 503
            assert "store " in answer.text
            assert shown(answer.text) == []
    finally:
        served.site.close()
        store.close()


def test_read_a_database_password_among_the_arguments_of_processes(away: str) -> None:
    worker = EstimationWorker(away, NAME, WORKER)
    try:
        request = EstimateRequest(
            organizations=("physics",), waiting=(), overlap=1, coalitions=1, seed=1
        )
        answer = worker.ask(request, memory_limit=4 << 30, time_limit=100)
        assert answer.result in {WorkResult.FAILED, WorkResult.UNAVAILABLE}
        assert shown(answer.why) == []
        process = worker._worker._process
        assert process is not None
        if answer.result == WorkResult.FAILED:
            assert shown(Path(f"/proc/{process.pid}/cmdline").read_text()) == []
            assert f"{STORE}={away}" in Path(f"/proc/{process.pid}/environ").read_text()
    finally:
        worker.stop()
        worker.close()


def test_read_a_database_password_where_a_driver_repeats_it() -> None:
    url = make_url(f"postgresql://fair:{ONE}%25@db/fair?sslmode=require&options={TWO}&x={THREE}")
    said = OperationalError("", {}, Exception(f'bad "{ONE}%" or {ONE}%25 for {TWO} in {THREE}'))
    with pytest.raises(StoreError) as caught, store_errors("db", secrets_of(url)):
        raise said
    assert shown(str(caught.value)) == []
    assert str(caught.value).endswith('(bad "***" or *** for *** in ***)')


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://fair:{ONE}@db:{TWO}/fair",
        f"oracle9://fair:{ONE}@db/fair",
        f"{ONE}",
        f"postgresql:/fair:{ONE}@db",
    ],
)
def test_read_a_database_password_where_the_url_is_wrong(url: str, tmp_path: Path) -> None:
    file = tmp_path / "shapleyprio.toml"
    file.write_text(f'[store]\nurl = "{url}"\n{ORGANIZATION}')
    file.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert shown(str(caught.value)) == []
    with pytest.raises(StoreError) as failed:
        Store.open(url)
    assert shown(str(failed.value)) == []


def test_read_a_database_password_in_a_report() -> None:
    others = (f"postgresql://fair:{ONE}@db", f"postgresql://u:{ONE}@h/d?password={TWO}")
    for url in (*(url.format(port=1) for url in AWAY), *others):
        assert shown(without_password(url) + label_of(url)) == []
        assert without_password(without_password(url)) == without_password(url)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_read_a_database_password_in_a_configuration_that_is_open_to_all(tmp_path: Path) -> None:
    url = AWAY[0].format(port=free_port())
    file = tmp_path / "shapleyprio.toml"
    file.write_text(f'[slurm]\ncluster = "c1"\n[store]\nurl = "{url}"\n{ORGANIZATION}')
    file.chmod(0o644)
    done = CliRunner().invoke(main, ["daemon", "--once", "--config", str(file)])
    assert done.exit_code == 2
    assert done.stderr == (
        f"shapleyprio: {file}:4: store.url: holds a password, and {file} is open to every user of "
        f"this host; chmod o= {file}\n"
    )
    file.chmod(0o640)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    assert as_nobody(dict(os.environ), "cat", str(file)).returncode != 0
    assert load_config(file).store.url == url


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o601])
@pytest.mark.parametrize("query", ["", "?password=x", "?sslpassword=x", "?passfile=/p"])
def test_read_a_password_in_the_query_of_a_configuration_that_is_open_to_all(
    mode: int, query: str, tmp_path: Path
) -> None:
    file = tmp_path / "shapleyprio.toml"
    file.write_text(f'[store]\nurl = "postgresql://fair@db/fair{query}"\n{ORGANIZATION}')
    file.chmod(mode)
    if "password" in query:
        with pytest.raises(ConfigError, match=r":2: store.url: holds a password, and .* chmod o= "):
            load_config(file)
    else:
        load_config(file)


def test_read_what_init_has_written(tmp_path: Path) -> None:
    file = tmp_path / "shapleyprio.toml"
    words = ["init", "--cluster-independent", "--config", str(file)]
    subprocess.run([sys.executable, "-m", "shapleyprio", *words], check=True, umask=0)
    assert file.stat().st_mode & 0o777 == 0o640
