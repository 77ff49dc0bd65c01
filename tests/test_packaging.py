"""What surrounds the program: the wheel, ./run, the systemd unit, the snippets for slurm.conf."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from configparser import ConfigParser
from email import message_from_string
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import click
import pytest
from click.testing import CliRunner

from shapleyprio.cli import COMMANDS, main
from shapleyprio.cli.common import exit_code_of
from shapleyprio.cli.options.shared import DEFAULT_CONFIG
from shapleyprio.cli.report import command as report
from shapleyprio.common.errors import ConfigError
from shapleyprio.common.shipped import shipped_files
from shapleyprio.config import StoreSection
from shapleyprio.config.keys import DriftSection, EstimationSection
from shapleyprio.daemon.checking.draft import draft
from shapleyprio.daemon.client import load_settings
from shapleyprio.daemon.serving import server
from shapleyprio.fairness.scale import scale
from shapleyprio.lab.testbed.configuration import ClusterSpec
from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.layout import Layout, PrioritySettings, others_can_add
from shapleyprio.slurm.text import config as text_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shapleyprio.lab.testbed.cluster import PrivateSlurm

    Boot = Callable[[ClusterSpec], PrivateSlurm]

ROOT = Path(__file__).parent.parent


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
    in_c = {name for name in sources(ROOT / "shapleyprio") if name.endswith((".c", ".h"))}
    assert sources(wheel / "shapleyprio") >= sources(ROOT / "shapleyprio") - in_c
    assert not sources(wheel / "shapleyprio") & in_c


def test_the_wheel_holds_the_functions_in_c_for_processors_of_this_kind(wheel: Path) -> None:
    (described,) = wheel.glob("*.dist-info/WHEEL")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert message_from_string(described.read_text()).get_all("Tag") == [f"py3-none-{platform}"]
    program = "from shapleyprio.replay.logs.columns import line_ends as f; print(f(b'1\\n2\\n'))"
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],  # the wheel stays as it is
        cwd=wheel.parent,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "2\n"


def test_the_wheel_holds_the_files_that_ship_as_they_are_in_the_checkout(wheel: Path) -> None:
    share = wheel / "shapleyprio" / "share"
    names = {file.name for file in shipped_files()}
    assert sources(share) == names
    for name in names:
        assert (share / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.parametrize(
    "folder", ["systemd", "slurm_conf", "grafana/dashboards", "grafana/alerts", "docs"]
)
def test_everything_in_a_folder_of_the_checkout_ships(folder: str) -> None:
    shipped = {file.name for file in shipped_files()}
    for path in (ROOT / folder).rglob("*"):
        if path.is_file() and not path.name.endswith(".test.yml"):
            assert str(path.relative_to(ROOT)) in shipped


def test_links_between_the_documents_that_ship_lead_somewhere(wheel: Path) -> None:
    share = wheel / "shapleyprio" / "share"
    for file in share.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read_text()):
            assert (file.parent / target).exists(), f"{file.relative_to(share)}: {target}"


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    assert {path.name.partition("-")[0] for path in wheel.iterdir()} == {"shapleyprio"}
    assert not list(wheel.rglob("__pycache__"))


def test_the_wheel_names_its_license_and_ships_its_types(wheel: Path) -> None:
    (described,) = wheel.glob("*.dist-info/METADATA")
    reported = message_from_string(described.read_text())
    assert reported["License-Expression"] == "GPL-2.0-or-later"
    assert reported["Author"] == "the shapleyprio developers"
    assert (described.parent / "licenses" / "LICENSE").read_bytes() == (
        ROOT / "LICENSE"
    ).read_bytes()
    assert (wheel / "shapleyprio" / "py.typed").exists()


def test_the_wheel_names_the_papers_where_the_document_about_them_does(wheel: Path) -> None:
    (described,) = wheel.glob("*.dist-info/METADATA")
    named = message_from_string(described.read_text()).get_all("Project-URL", [])
    links = dict(line.split(", https://") for line in map(str, named))
    documented = re.findall(
        r"\[([^\]]+)\]\(https://([^)]+)\)", (ROOT / "docs" / "papers.md").read_text()
    )
    assert links == dict(documented)
    assert len(links) == 4


def test_the_example_of_the_configuration_is_up_to_date() -> None:
    assert (ROOT / "shapleyprio.toml.example").read_text() == draft(None), (
        "run: ./run shapleyprio init --cluster-independent --output - > shapleyprio.toml.example"
    )


def test_an_installed_package_finds_its_migrations(wheel: Path) -> None:
    program = "from shapleyprio.store import migrations as m; print(m.scripts(), m.HEAD)"
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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs commands where docs/install.md has been followed, with other directories.

    They run in a shell, and must succeed; what they print is returned.
    """
    folder = tmp_path_factory.mktemp("installed")
    checkout = folder / "checkout"
    left_out = shutil.ignore_patterns(".git", ".*cache", ".matrix", ".venv", "dist", "__pycache__")
    shutil.copytree(ROOT, checkout, ignore=left_out, symlinks=True)
    (folder / "bin").mkdir()
    places = {
        "/opt/shapleyprio": str(folder / "venv"),
        "/usr/local/bin": str(folder / "bin"),
        "/usr/share/shapleyprio": str(folder / "share"),
        "/etc/": f"{folder}/etc/",
    }

    def run(commands: str) -> str:
        for there, here in places.items():
            commands = commands.replace(there, here)
        done = subprocess.run(
            ["sh", "-euc", commands],
            cwd=checkout,
            env={
                **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
                "CFLAGS": "-O0",  # no function in C is run there
                "PIP_COMPILE": "0",  # what is imported is compiled then
            },
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    try:
        run(install_blocks()[0])
    except AssertionError as failure:
        away = re.search(r"NewConnectionError|NameResolutionError|ConnectTimeout", str(failure))
        if away is None:
            raise
        pytest.skip(f"no index of Python packages answers: {away[0]}")
    return run


def install_blocks() -> list[str]:
    """The commands that docs/install.md shows for the wheel."""
    section = (ROOT / "docs" / "install.md").read_text().split("\n## Wheel\n")[1]
    return re.findall(r"^```sh\n(.*?)^```$", section.split("\n## ")[0], re.MULTILINE | re.DOTALL)


def test_the_wheel_is_installed_with_the_commands_that_are_documented(
    installed: Callable[..., str],
) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert installed("shapleyprio --version") == f"shapleyprio, version {version}\n"
    where = installed("cd /; /opt/shapleyprio/bin/python -c 'import shapleyprio as s; print(s)'")
    assert "/venv/lib/" in where
    for name in ("init", "check", "daemon", "files"):
        assert f"{name} [OPTIONS]" in installed(f"shapleyprio {name} --help")


def test_an_installed_wheel_brings_all_files_and_the_daemons_unit(
    installed: Callable[..., str],
) -> None:
    _, files, unit = install_blocks()
    names = [file.name for file in shipped_files()]
    listed = [line.split()[0] for line in installed(files.splitlines()[0]).splitlines() if line]
    assert listed[: len(names)] == names
    installed(files)
    # who is there as a user, and what systemd runs, is the whole machine's
    installed("\n".join(line for line in unit.splitlines() if "system" not in line.split()[0]))
    for name, place in {
        "sysusers": "sysusers.d/shapleyprio.conf",
        "tmpfiles": "tmpfiles.d/shapleyprio.conf",
        "service": "systemd/system/shapleyprio.service",
    }.items():
        text = (ROOT / "systemd" / f"shapleyprio.{name}").read_text()
        assert installed(f"cat /etc/{place}") == text


def test_an_upgraded_wheel_replaces_the_daemons_unit(installed: Callable[..., str]) -> None:
    section = (ROOT / "docs" / "install.md").read_text().split("\n## Upgrade\n")[1]
    upgrade = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]
    unit = "/etc/systemd/system/shapleyprio.service"
    installed(f"mkdir -p $(dirname {unit}); echo of an older release > {unit}")
    files = [line for line in upgrade.splitlines() if line.split()[0] in {"shapleyprio", "install"}]
    installed("\n".join(files))
    assert installed(f"cat {unit}") == (ROOT / "systemd" / "shapleyprio.service").read_text()
    assert upgrade.index("install -m") < upgrade.index("daemon-reload") < upgrade.index("start")


def test_an_installed_wheel_works_without_the_packages_that_replay(
    installed: Callable[..., str], tmp_path: Path
) -> None:
    drawn = installed("shapleyprio init --cluster-independent --output -")
    assert drawn == (ROOT / "shapleyprio.toml.example").read_text()
    refused = installed("shapleyprio replay README.md --deal-users 2 2>&1 || echo $?")
    assert refused.endswith("pip install 'shapleyprio[replay]'\n2\n")
    configured = f"""
        cd {tmp_path}
        shapleyprio init --cluster-independent --output c.toml
        sed -i "s|^#url = .*|url = 'sqlite:///$PWD/store.db'|" c.toml
        shapleyprio db upgrade --config c.toml
        shapleyprio db status --config c.toml --json
    """
    assert '"revision": "0' in installed(configured)


# -- the locks


def locked(name: str) -> dict[str, set[str]]:
    """Package -> its versions (Pythons may need different ones), each with its hashes."""
    entries = re.findall(
        r"^([a-z0-9.-]+)==(\S+)(.*?)(?=^\S|\Z)",
        (ROOT / name).read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert all("--hash=sha256:" in rest for _, _, rest in entries)
    versions: dict[str, set[str]] = {}
    for package, version, _ in entries:
        versions.setdefault(package, set()).add(version)
    return versions


def wanted_by(*groups: str) -> set[str]:
    """What pyproject.toml wants for the core, and for extras and groups of dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = {**project["project"]["optional-dependencies"], **project["dependency-groups"]}
    wanted = {"core": project["project"]["dependencies"], **lists}
    names = set()
    for group in groups:
        for one in wanted[group]:
            if isinstance(one, dict):
                names |= wanted_by(one["include-group"])
            elif inner := re.match(r"shapleyprio\[(.*)\]", one):
                names |= wanted_by(*inner[1].split(","))
            else:
                names.add(re.split(r"[][<>=!~ ]", one)[0].lower())
    return names


LOCKS = {
    "requirements.lock": ("core", "dev", "demo", "replay", "report"),
    "requirements-runtime.lock": ("core", "package"),
    "requirements-replay.lock": ("core", "package", "replay", "report", "trial"),
    "requirements-build.lock": ("build",),
    "requirements-test.lock": ("test",),
}


def test_every_lock_is_known_here() -> None:
    assert {path.name for path in ROOT.glob("requirements*.lock")} == set(LOCKS)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_what_is_wanted_in_the_versions_that_are_tested(name: str) -> None:
    here, everything = locked(name), locked("requirements.lock")
    assert wanted_by(*LOCKS[name]) <= set(here)
    for package, versions in here.items():
        assert versions <= everything[package]


def test_what_a_head_node_installs_is_the_core_alone() -> None:
    elsewhere = wanted_by("dev", "replay", "report") - wanted_by("core", "package")
    # jinja2 and clustershell need them
    shared = {"markupsafe", "pyyaml"}
    assert elsewhere & set(locked("requirements-runtime.lock")) == shared


# -- the command line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_how_it_is_used(name: str) -> None:
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


def test_run_shows_its_commands_and_refuses_others(tmp_path: Path) -> None:
    def answer(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "run", *words], cwd=tmp_path, check=False, capture_output=True, text=True
        )

    reported = answer("--help")
    assert reported.returncode == 0
    listed = set(re.findall(r"^  (\w+) \[|^  (\w+)  ", reported.stdout, re.MULTILINE))
    branches = re.findall(r"^(\w+(?: \| \w+)*)\)$", (ROOT / "run").read_text(), re.MULTILINE)
    known = {command for branch in branches for command in branch.split(" | ")}
    assert {first or second for first, second in listed} == known
    assert answer("nonsense").returncode == answer().returncode == 2
    assert answer("nonsense").stderr == reported.stdout


# -- systemd


def unit_named(name: str) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=False, delimiters=["="])
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    assert parser.read(ROOT / "systemd" / name)
    return parser


@pytest.fixture(scope="module")
def unit() -> ConfigParser:
    return unit_named("shapleyprio.service")


def test_the_monthly_report_is_written_by_the_daemons_user_into_its_directory(
    unit: ConfigParser,
) -> None:
    service = unit_named("shapleyprio-report.service")["Service"]
    program, command, *words = shlex.split(service["ExecStart"])
    assert (program, command) == ("shapleyprio", "report")
    with report.make_context("report", words) as context:
        assert context.params["config_path"] == DEFAULT_CONFIG
        state = Path("/var/lib", service["StateDirectory"])
        assert context.params["directory"].is_relative_to(state)
    for key in ("User", "Group", "StateDirectory", "StateDirectoryMode", "UMask"):
        assert service[key] == unit["Service"][key]


def test_the_monthly_report_waits_for_somebody_to_enable_its_timer() -> None:
    timer = unit_named("shapleyprio-report.timer")
    assert timer["Timer"]["Persistent"] == "yes"
    assert timer["Install"]["WantedBy"] == "timers.target"
    assert "Install" not in unit_named("shapleyprio-report.service")
    rules = (ROOT / "packaging" / "debian" / "rules").read_text()
    (line,) = re.findall(r"dh_installsystemd .*--name=shapleyprio-report$", rules, re.MULTILINE)
    assert {"--no-enable", "--no-start"} < set(line.split())
    for kind in ("service", "timer"):
        assert f"shapleyprio-report.{kind} debian/shapleyprio.shapleyprio-report.{kind}" in rules
        spec = (ROOT / "packaging" / "rpm" / "shapleyprio.spec").read_text()
        assert f"systemd/shapleyprio-report.{kind}" in spec


def test_the_unit_starts_the_daemon_with_options_it_has(unit: ConfigParser) -> None:
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program == "shapleyprio"  # systemd finds it in /usr/local/bin or /usr/bin
    assert words[0] == "daemon"
    assert parse(words).params["config_path"] == DEFAULT_CONFIG


def test_the_unit_gives_up_on_a_bad_configuration_only(unit: ConfigParser) -> None:
    code = exit_code_of(ConfigError([]))
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"] == str(code)


def test_the_units_directories_are_where_the_program_looks(unit: ConfigParser) -> None:
    assert DEFAULT_CONFIG.parent == Path("/etc", unit["Service"]["ConfigurationDirectory"])
    runtime = Path("/run", unit["Service"]["RuntimeDirectory"])
    assert os.environ.get("RUNTIME_DIRECTORY") is None
    assert load_settings(ROOT / "client.toml.example").socket == runtime / "socket"
    state = Path("/var/lib", unit["Service"]["StateDirectory"])
    assert StoreSection().url == f"sqlite:///{state}/shapleyprio.db"


def test_the_units_directories_are_those_that_tmpfiles_makes(unit: ConfigParser) -> None:
    lines = (ROOT / "systemd" / "shapleyprio.tmpfiles").read_text().splitlines()
    made = {line.split()[1]: line.split()[2:5] for line in lines if line.startswith("d ")}
    user, service = unit["Service"]["User"], unit["Service"]
    state = f"/var/lib/{service['StateDirectory']}"
    assert made[state] == [service["StateDirectoryMode"], user, user]
    mode = service["ConfigurationDirectoryMode"]
    assert int(mode, 8) & 0o007 == 0o001  # to client.toml, and to nothing else
    kept = [line.split()[1:3] for line in lines if line.startswith("z ")]
    assert kept == [[str(DEFAULT_CONFIG), "0640"]]
    assert made[str(DEFAULT_CONFIG.parent)] == [mode, "root", user]
    spool = "/var/spool/shapleyprio"  # of the table of points, which everybody reads
    assert made[spool] == ["0755", unit["Service"]["User"], unit["Service"]["Group"]]
    assert set(made) == {state, spool, str(DEFAULT_CONFIG.parent)}


def test_the_unit_writes_to_its_own_directories_alone(unit: ConfigParser) -> None:
    service = unit["Service"]
    assert "CacheDirectory" not in service
    assert service["ProtectSystem"] == "strict"
    assert service["ReadWritePaths"] == "-/var/spool/shapleyprio"


def test_the_unit_leaves_room_for_its_workers(unit: ConfigParser) -> None:
    service = unit["Service"]
    workers = DriftSection().memory_limit + 2 * EstimationSection().memory_limit
    assert int(service["MemoryMax"].removesuffix("G")) << 30 >= workers + (1 << 30)
    assert int(service["TasksMax"]) > 2 * (server.THREADS + server.METRICS_THREADS)
    assert not {"MemoryHigh", "LimitAS", "MemoryDenyWriteExecute"} & set(service)


@pytest.mark.parametrize(
    "name", ["shapleyprio.service", "shapleyprio-report.service", "shapleyprio-report.timer"]
)
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path, name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed (Debian's package systemd)")
    program = shutil.which("shapleyprio", path="/usr/local/bin:/usr/bin")
    for file in (ROOT / "systemd").glob("shapleyprio*"):
        shown = file.read_text()
        if program is None:  # it need only be there
            shown = shown.replace("=shapleyprio ", "=/bin/true ")
        (tmp_path / file.name).write_text(shown)
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / name],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "shapleyprio" not in checked.stderr


def test_the_units_user_is_the_one_that_sysusers_makes(unit: ConfigParser) -> None:
    lines = (ROOT / "systemd" / "shapleyprio.sysusers").read_text().splitlines()
    (made,) = [shlex.split(line) for line in lines if line.startswith("u ")]
    assert made[1] == unit["Service"]["User"] == unit["Service"]["Group"]


def shown_commands(text: str) -> Iterator[list[str]]:
    """What a document's code says after ``shapleyprio``."""
    for code in re.findall(r"```sh\n(.*?)```|`([^`\n]+)`", text, re.DOTALL):
        for line in "".join(code).splitlines():
            match = re.match(r"(?:runuser -u shapleyprio -- )?(?:\S*/)?shapleyprio (.+)", line)
            if match:
                yield shlex.split(match[1], comments=True)


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/install.md",
        "docs/monitoring.md",
        "docs/upgrading.md",
        "slurm_conf/README.md",
        "systemd/README.md",
    ],
)
def test_the_documents_show_commands_that_exist(name: str) -> None:
    commands = list(shown_commands((ROOT / name).read_text()))
    assert len(commands) >= 2
    for words in commands:
        if len(words) == 1:
            assert words[0] in {*COMMANDS, "--help"}
        elif not words[-1].isupper():  # that is a placeholder
            parse(words)


# -- slurm.conf


def settings_of(channel: str) -> dict[str, str]:
    lines = (ROOT / "slurm_conf" / f"{channel}.conf").read_text().splitlines()
    return text_config.configuration("\n".join(line for line in lines if line[:1] != "#"))


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_settings_keep_a_strict_order(channel: str) -> None:
    settings = text_config.priority_settings(settings_of(channel))
    assert isinstance(settings, PrioritySettings)
    layout = Layout(
        cluster="testbed",
        version="24.11.5",
        nodes={},
        partitions={},
        accounts={},
        qos_priorities={"normal": 0, "physics": 1_000_000},
        enforces_accounts=True,
        settings=settings,
    )
    others = others_can_add(layout, CHANNELS[channel].factor)
    wanted = scale(5, others, None)
    assert wanted.step > others
    assert CHANNELS[channel].step_in_points(layout, wanted, 5) == wanted.step
    if channel == "site_factor":  # the example in its comment
        assert [wanted.points(level) for level in (0, 1, 4)] == [200_000, 400_000, 1_000_000]


@pytest.mark.real_slurm
@pytest.mark.parametrize("channel", CHANNELS)
def test_a_real_slurm_takes_the_settings(channel: str, boot_slurm: Boot) -> None:
    wanted = settings_of(channel)
    slurm = boot_slurm(ClusterSpec(partitions={"pa": ["a1"]}, extra=wanted))
    live = text_config.configuration(slurm.run("scontrol", "show", "config"))
    lower = {name.lower(): value for name, value in live.items()}
    shown = {name: lower[name.lower()] for name in wanted}
    if shown.get("PriorityFlags") == "NO_NORMAL_ALL":  # Slurm 22.05 shows it for any part of it
        shown["PriorityFlags"] = wanted["PriorityFlags"]
    assert shown == wanted


@pytest.mark.parametrize(
    "file", sorted((ROOT / "slurm_conf").glob("*.lua")), ids=lambda it: it.name
)
def test_the_lua_scripts_are_lua(file: Path) -> None:
    luac = shutil.which("luac") or shutil.which("luac5.1")
    if luac is None:
        pytest.skip("luac is not installed (Debian's package lua5.1)")
    subprocess.run([luac, "-p", file], check=True)
