"""What surrounds the program: the wheel, ./run, the systemd unit, the snippets for slurm.conf."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import click
import pytest
from click.testing import CliRunner

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.common import DEFAULT_CONFIG, exit_code_of
from shapleyprio.config import ConfigError, StoreSection
from shapleyprio.fairness.ranking import scale
from shapleyprio.slurm import text_config
from shapleyprio.slurm.port import Channel, Layout, PrioritySettings
from shapleyprio.slurm.priority import others_can_add, step_in_points
from shapleyprio.testbed.configuration import ClusterSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shapleyprio.testbed.cluster import PrivateSlurm

    Boot = Callable[[ClusterSpec], PrivateSlurm]

ROOT = Path(__file__).parent.parent
NOBODY = 65534


# -- the package


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (archive,) = folder.glob("*.whl")
    with ZipFile(archive) as file:
        file.extractall(folder / "unpacked")
    return folder / "unpacked"


def sources(folder: Path) -> set[str]:
    found = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {str(path.relative_to(folder)) for path in found}


def test_the_wheel_holds_the_package_and_the_migrations(wheel: Path) -> None:
    assert {"env.py", "versions/0001_first_tables.py"} <= sources(wheel / "shapleyprio" / "sql")
    assert sources(wheel / "shapleyprio" / "sql") == sources(ROOT / "sql")
    assert sources(wheel / "shapleyprio") >= sources(ROOT / "shapleyprio")


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    assert {path.name.partition("-")[0] for path in wheel.iterdir()} == {"shapleyprio"}
    assert not list(wheel.rglob("__pycache__"))


def test_an_installed_package_finds_its_migrations(wheel: Path) -> None:
    program = "from shapleyprio.store import migrations as m; print(m.scripts(), m.head())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=wheel.parent,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        check=True,
        capture_output=True,
        text=True,
    )
    folder, head = done.stdout.split()
    assert folder == str(wheel / "shapleyprio" / "sql")
    assert head


def test_the_lock_names_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["demo"],
        *project["dependency-groups"]["dev"],
    ]
    lock = (ROOT / "requirements.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9.-]+)==", lock, re.MULTILINE))
    assert {re.split(r"[<>=!~ ]", one)[0].lower() for one in wanted} <= locked


# -- the command line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_tells_how_it_is_used(name: str) -> None:
    answer = CliRunner().invoke(main, [name, "--help"])
    assert answer.exit_code == 0, answer.output
    assert f"{name} [OPTIONS]" in answer.output


def test_help_is_quick_for_it_imports_nothing_heavy() -> None:
    program = """if True:
        import sys
        from shapleyprio.cli import main
        main(["--help"], standalone_mode=False)
        heavy = {"ClusterShell", "alembic", "apscheduler", "pydantic", "rich", "sqlalchemy"}
        sys.exit(f"imported {heavy & set(sys.modules)}" if heavy & set(sys.modules) else 0)
    """
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def parse(words: list[str]) -> click.Context:
    """Parses the words after ``shapleyprio``, without running the command."""
    with click.Context(main, **main.context_settings) as context:
        command = main.get_command(context, words[0])
    assert command is not None, words
    return command.make_context(words[0], words[1:], context)


# -- ./run


def test_both_scripts_are_executable_and_read_by_a_plain_shell() -> None:
    for script, shell in ((ROOT / "run", "sh"), (ROOT / ".ci" / "run", "bash")):
        assert os.access(script, os.X_OK)
        subprocess.run([shell, "-n", script], check=True)


def test_run_tells_its_commands_and_refuses_others(tmp_path: Path) -> None:
    def answer(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "run", *words], cwd=tmp_path, check=False, capture_output=True, text=True
        )

    told = answer("--help")
    assert told.returncode == 0
    listed = set(re.findall(r"^  (\w+) \[|^  (\w+)  ", told.stdout, re.MULTILINE))
    known = re.findall(r"^(\w+)\)$", (ROOT / "run").read_text(), re.MULTILINE)
    assert {first or second for first, second in listed} == set(known)
    assert answer("nonsense").returncode == answer().returncode == 2
    assert answer("nonsense").stderr == told.stdout


# -- systemd


@pytest.fixture(scope="module")
def unit() -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False, delimiters=["="])
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    parser.read(ROOT / "systemd" / "shapleyprio.service")
    return parser


def test_the_unit_starts_the_daemon_with_options_it_has(unit: ConfigParser) -> None:
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "shapleyprio"
    assert words[0] == "daemon"
    assert parse(words).params["config_path"] == DEFAULT_CONFIG


def test_the_unit_gives_up_on_a_bad_configuration_only(unit: ConfigParser) -> None:
    code = exit_code_of(ConfigError([]))
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"] == str(code)


def test_the_units_directories_are_where_the_program_looks(unit: ConfigParser) -> None:
    assert DEFAULT_CONFIG.parent == Path("/etc", unit["Service"]["ConfigurationDirectory"])
    state = Path("/var/lib", unit["Service"]["StateDirectory"])
    assert StoreSection().url == f"sqlite:///{state}/shapleyprio.db"


def test_the_units_user_is_the_one_that_sysusers_makes(unit: ConfigParser) -> None:
    lines = (ROOT / "systemd" / "shapleyprio.sysusers").read_text().splitlines()
    (made,) = [shlex.split(line) for line in lines if line.startswith("u ")]
    assert made[1] == unit["Service"]["User"] == unit["Service"]["Group"]


def shown_commands(text: str) -> Iterator[list[str]]:
    """What a document's code says after ``shapleyprio`` (``try`` is an alias for it)."""
    for code in re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.DOTALL):
        for line in "".join(code).splitlines():
            match = re.match(r"(?:\S*/)?(?:shapleyprio|try) (.+)", line)
            if match:
                yield shlex.split(match[1])


@pytest.mark.parametrize("folder", ["slurm_conf", "systemd"])
def test_the_documents_show_commands_that_exist(folder: str) -> None:
    commands = list(shown_commands((ROOT / folder / "README.md").read_text()))
    assert len(commands) >= 3
    for words in commands:
        parse(words)


# -- slurm.conf


def settings_of(channel: Channel) -> dict[str, str]:
    lines = (ROOT / "slurm_conf" / f"{channel}.conf").read_text().splitlines()
    return text_config.configuration("\n".join(line for line in lines if line[:1] != "#"))


@pytest.mark.parametrize("channel", Channel)
def test_the_settings_keep_a_strict_order(channel: Channel) -> None:
    settings = text_config.priority_settings(settings_of(channel))
    assert isinstance(settings, PrioritySettings)
    layout = Layout(
        cluster="testbed",
        nodes={},
        partitions={},
        accounts={},
        qos_priorities={"normal": 0, "physics": 1_000_000},
        settings=settings,
    )
    wanted = scale(5, others_can_add(layout, channel), None)
    assert wanted.holds
    assert step_in_points(layout, channel, wanted, 5) == wanted.step
    if channel is Channel.SITE_FACTOR:  # the example in its comment
        assert [wanted.priority(rank) for rank in (0, 1, 4)] == [200_000, 400_000, 1_000_000]


@pytest.mark.real_slurm
@pytest.mark.parametrize("channel", Channel)
def test_a_real_slurm_takes_the_settings(channel: Channel, boot_slurm: Boot) -> None:
    wanted = settings_of(channel)
    slurm = boot_slurm(ClusterSpec(partitions={"pa": ["a1"]}, extra=wanted))
    live = text_config.configuration(slurm.run("scontrol", "show", "config"))
    lower = {name.lower(): value for name, value in live.items()}
    shown = {name: lower[name.lower()] for name in wanted}
    if shown.get("PriorityFlags") == "NO_NORMAL_ALL":  # Slurm 22.05 shows it for any part of it
        shown["PriorityFlags"] = "NO_NORMAL_QOS"
    assert shown == wanted


def test_the_lua_script_is_lua() -> None:
    luac = shutil.which("luac") or shutil.which("luac5.1")
    if luac is None:
        pytest.skip("luac is not installed (Debian's package lua5.1)")
    subprocess.run([luac, "-p", ROOT / "slurm_conf" / "job_submit.lua"], check=True)


@pytest.mark.real_slurm
def test_the_lua_script_keeps_users_from_changing_nice(boot_slurm: Boot) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    slurm = boot_slurm(ClusterSpec(partitions={"pa": ["a1"]}))
    shutil.copy(ROOT / "slurm_conf" / "job_submit.lua", slurm.place.slurm_conf.parent)
    with slurm.place.slurm_conf.open("a") as file:
        file.write("JobSubmitPlugins=lua\n")
    slurm.restart("slurmctld")
    slurm.directory.parent.chmod(0o755)  # nobody reaches slurm.conf and munge there
    slurm.add_accounts({"physics": None})
    slurm.run("sacctmgr", "-i", "add", "user", "nobody", "account=physics")

    def as_nobody(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            env=slurm.environment,
            cwd="/",
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            check=False,
            capture_output=True,
            text=True,
        )

    submit = ["sbatch", "--parsable", "--begin=now+1hour", "--nice=5", "--account=physics"]
    job = as_nobody(*submit, "--wrap=true").stdout.strip()
    refused = as_nobody("scontrol", "update", f"JobId={job}", "Nice=7")
    assert "permission denied" in refused.stderr
    assert as_nobody("scontrol", "update", f"JobId={job}", "Comment=mine").returncode == 0
    assert as_nobody("scontrol", "hold", job).returncode == 0
    assert as_nobody("scontrol", "release", job).returncode == 0
    assert " Nice=5 " in slurm.run("scontrol", "show", "job", "-o", job)
    slurm.run("scontrol", "update", f"JobId={job}", "Nice=-100000")
    assert " Nice=-100000 " in slurm.run("scontrol", "show", "job", "-o", job)
