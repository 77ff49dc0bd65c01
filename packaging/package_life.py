"""What an administrator does with the Debian packages, from installation to removal.

It runs as root on a machine that systemd has booted and that has a Slurm without configuration;
`test-package` makes one. Each step is a function; its docstring is what it proves.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

STEPS: list[Callable[[], None]] = []

PACKAGES = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
OWN = Path("/srv/tried")
"""What the steps make for themselves."""
CONFIGURATION = Path("/etc/shapleyprio/shapleyprio.toml")
STATE = Path("/var/lib/shapleyprio")
ENVIRONMENT = Path("/usr/lib/shapleyprio")
UNIT = Path("/usr/lib/systemd/system/shapleyprio.service")
BOTH = ("shapleyprio", "shapleyprio-replay")
PATIENCE = 120.0  # seconds until something must have happened

SLURM_CONF = """\
ClusterName=consortium
SlurmctldHost={host}
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd-%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={host}
AccountingStorageEnforce=associations,limits,qos
PriorityCalcPeriod=00:01:00
NodeName=p1 NodeHostname={host} NodeAddr=127.0.0.1 Port=17001 CPUs=2 CoresPerSocket=2 RealMemory=500
NodeName=b1 NodeHostname={host} NodeAddr=127.0.0.1 Port=17002 CPUs=2 CoresPerSocket=2 RealMemory=500
PartitionName=physics Nodes=p1 AllowAccounts=physics MaxTime=INFINITE
PartitionName=biology Nodes=b1 AllowAccounts=biology MaxTime=INFINITE
PartitionName=all Nodes=p1,b1 Default=YES MaxTime=INFINITE DefaultTime=60
"""
SLURMDBD_CONF = """\
AuthType=auth/munge
DbdHost={host}
SlurmUser=slurm
PidFile=/run/slurm/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
"""
DATABASE = """\
CREATE DATABASE slurm_acct_db;
CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
"""


def step(function: Callable[[], None]) -> Callable[[], None]:
    """Adds a function to the steps."""
    STEPS.append(function)
    return function


class StepError(RuntimeError):
    """Something is not as it must be."""


def expect(*, holds: bool, otherwise: str) -> None:
    """Ends the step if something does not hold."""
    if not holds:
        raise StepError(otherwise)


def run(words: str, *, user: str | None = None, code: int | None = 0, given: str = "") -> str:
    """Runs a command, and returns what it printed, errors included.

    Args:
        words: as in a shell, but no shell reads them.
        user: who runs it, root if None.
        code: the exit code that it must have; any if None.
        given: its standard input.
    """
    argv = [*(["runuser", "-u", user, "--"] if user else []), *shlex.split(words)]
    done = subprocess.run(
        argv,
        check=False,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
    )
    if code is not None and done.returncode != code:
        raise StepError(f"{words}: exit code {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


def until(holds: Callable[[], object], what: str) -> None:
    """Waits until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        expect(holds=time.monotonic() < end, otherwise=f"after {PATIENCE:.0f} s: {what}")
        time.sleep(0.5)


def may_submit(user: str, account: str) -> None:
    """Waits until slurmctld has heard from slurmdbd that the user belongs to the account."""
    association = re.compile(rf"\bAccount={account} UserName={user}\(")
    shown = f"scontrol -o show assoc_mgr flags=assoc users={user}"
    heard = f"slurmctld has not heard of {user} in account {account}"
    until(lambda: association.search(run(shown, code=None)), heard)


def apt(words: str) -> str:
    """Runs apt-get, which asks nothing."""
    printed = run(f"apt-get -y {words}")
    for sign in ("Traceback", "warning:", "cannot", "Failed"):
        expect(holds=sign not in printed, otherwise=f"apt-get {words} printed:\n{printed}")
    return printed


def active() -> str:
    """What systemd says of the daemon."""
    return run("systemctl is-active shapleyprio", code=None).strip()


def site_factors() -> dict[str, list[int]]:
    """Account -> the site factors of its waiting jobs, as Slurm has them."""
    factors = dict(line.split() for line in run("sprio -h -o '%i %S'").splitlines())
    found: dict[str, list[int]] = {}
    for line in run("squeue -h -t PD -o '%i %a'").splitlines():
        job, account = line.split()
        found.setdefault(account, []).append(int(float(factors.get(job, "0"))))
    return found


def steers() -> bool:
    """Whether every waiting job has a priority from us, biology's the higher one."""
    factors = site_factors()
    return min(factors["biology"]) > max(factors["physics"]) > 0


def times_started() -> int:
    """How often systemd has started the daemon since the machine has booted."""
    log = run("journalctl -o json --output-fields=MESSAGE_ID -u shapleyprio.service")
    started = "39f53479d3a045ac8e11786248231fbf"  # SD_MESSAGE_UNIT_STARTED
    return sum(started in line for line in log.splitlines())


def digest(file: Path) -> str:
    """A checksum."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def everything() -> set[str]:
    """All files but those that are about packages, logs and the moment."""
    passing = r"^/(proc|sys|dev|run|tmp|srv|source|packages|root/\.cache)(/|$)"
    passing += r"|^/var/(log|cache/(apt|debconf|ldconfig|man)|lib/(dpkg|apt|systemd|mysql|slurm))/"
    found: set[str] = set()
    for folder, folders, files in os.walk("/"):
        place = folder.rstrip("/")
        folders[:] = [one for one in folders if not re.match(passing, f"{place}/{one}")]
        found.update(f"{place}/{name}" for name in (*folders, *files))
    of_debian = re.compile(r"^/usr/(lib|share)/python3.*/__pycache__")
    return {path for path in found if not re.match(passing, path) and not of_debian.match(path)}


BEFORE: set[str] = set()


# -- a cluster


@step
def slurm_runs() -> None:
    """A Slurm of two organizations runs under systemd, as the site set it up."""
    host = os.uname().nodename
    slurm = Path("/etc/slurm")
    slurm.mkdir(exist_ok=True)
    (slurm / "slurm.conf").write_text(SLURM_CONF.format(host=host))
    database = slurm / "slurmdbd.conf"
    database.write_text(SLURMDBD_CONF.format(host=host))
    database.chmod(0o600)
    run("chown slurm: /etc/slurm/slurmdbd.conf")
    release = re.findall(r"\d+", run("slurmctld -V"))[:2]
    plugin = "cgroup/v1" if release < ["23"] else "disabled"
    (slurm / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")
    run("install -d -o slurm /run/slurm /var/lib/slurm/slurmctld /var/log/slurm")
    run("systemctl stop slurmctld slurmdbd slurmd")  # started at boot, without a configuration
    run("systemctl start mariadb munge")
    run("mariadb", given=DATABASE)
    run("systemctl start slurmdbd")
    until(lambda: "root" in run("sacctmgr -nP show user", code=None), "slurmdbd is away")
    run("sacctmgr -i add cluster consortium", code=None)
    # before slurmctld starts, for slurmdbd tells it nothing until it has registered there
    for account in ("physics", "biology"):
        run(f"sacctmgr -i add account {account} cluster=consortium")
        run(f"sacctmgr -i add user root account={account}")
    run("systemctl start slurmctld")
    for node in ("p1", "b1"):
        run(f"systemd-run -q --unit=slurmd-{node} slurmd -D -N {node}")
    for account in ("physics", "biology"):
        may_submit("root", account)
    until(lambda: run("sinfo -h -N -t idle -o %N").split(), "no node is idle")
    until(lambda: len(set(run("sinfo -h -N -t idle -o %N").split())) == 2, "a node is not idle")


@step
def jobs_wait() -> None:
    """Physics uses the nodes of both, and both wait."""
    for _ in range(2):
        run("sbatch -A physics -n 2 -o /dev/null --wrap 'sleep 3600'")
    until(lambda: len(run("squeue -h -t R -o %i").split()) == 2, "no job starts")
    for account in ("physics", "biology", "physics", "biology"):
        run(f"sbatch -A {account} -n 2 -o /dev/null --wrap 'sleep 3600'")


# -- installation


@step
def installing_starts_nothing() -> None:
    """Both packages install; nothing is enabled or started without a configuration."""
    BEFORE.update(everything())
    apt(f"install {' '.join(map(str, sorted(PACKAGES.glob('*.deb'))))}")
    expect(holds=active() == "inactive", otherwise=f"the daemon is {active()}")
    enabled = run("systemctl is-enabled shapleyprio", code=None).strip()
    expect(holds=enabled == "disabled", otherwise=f"the unit is {enabled}")
    expect(holds=not CONFIGURATION.exists(), otherwise=f"{CONFIGURATION} is there")
    run("dpkg --audit")
    for package in BOTH:
        changed = run(f"dpkg --verify {package}")
        expect(holds=not changed, otherwise=f"changed after installation:\n{changed}")


@step
def the_unit_is_valid() -> None:
    """The unit is one that systemd finds nothing wrong with."""
    found = run(f"systemd-analyze verify --man=no {UNIT}")
    expect(holds="shapleyprio" not in found, otherwise=found)


@step
def its_files_are_where_one_looks() -> None:
    """Manual pages, completions, settings, dashboards, alerts and an example are there."""
    share = "/usr/share"
    for file in (
        f"{share}/man/man1/shapleyprio.1.gz",
        f"{share}/man/man1/shapleyprio-db-upgrade.1.gz",
        f"{share}/man/man5/shapleyprio.toml.5.gz",
        f"{share}/bash-completion/completions/shapleyprio",
        f"{share}/zsh/vendor-completions/_shapleyprio",
        f"{share}/fish/vendor_completions.d/shapleyprio.fish",
        f"{share}/shapleyprio/slurm_conf/site_factor.conf",
        f"{share}/shapleyprio/grafana/dashboards/overview.json",
        f"{share}/shapleyprio/grafana/alerts/shapleyprio.rules.yml",
        f"{share}/doc/shapleyprio/docs/configuration.md",
        "/etc/shapleyprio/shapleyprio.toml.example",
    ):
        expect(holds=Path(file).stat().st_size > 0, otherwise=f"{file} is empty")
    shipped = json.loads(run("shapleyprio files --json"))
    expect(holds=len(shipped) > 20, otherwise=f"only {len(shipped)} files are listed")
    completed = "env _SHAPLEYPRIO_COMPLETE=bash_complete COMP_CWORD=1"
    found = run(f"{completed} 'COMP_WORDS=shapleyprio rollb' shapleyprio")
    expect(holds=found == "plain,rollback\n", otherwise=f"completed: {found!r}")
    run(f"bash -n {share}/bash-completion/completions/shapleyprio")


@step
def other_pythons_do_not_matter() -> None:
    """PYTHONPATH, as environment modules set it, does not reach the program."""
    poison = OWN / "poison"
    poison.mkdir(parents=True)
    (poison / "click.py").write_text("raise SystemExit('poisoned')")
    run(f"env PYTHONPATH={poison} PYTHONHOME={poison} shapleyprio --version")


@step
def everybody_replays_at_once() -> None:
    """A user without a home replays a log."""
    log = OWN / "log.swf"
    log.parent.mkdir(exist_ok=True)
    jobs = (f"{n} {n} 0 9 1 -1 -1 1 9 -1 1 {n % 4} 1 -1 1 -1 -1 -1\n" for n in range(1, 40))
    log.write_text("; MaxProcs: 2\n" + "".join(jobs))
    shown = run(f"shapleyprio replay {log} --deal-users 2", user="nobody")
    expect(holds="directcontr" in shown and "Traceback" not in shown, otherwise=shown)


# -- from nothing to steering


@step
def init_draws_a_configuration() -> None:
    """`shapleyprio init` writes it, and nobody but root and the daemon can read it."""
    run("shapleyprio init")
    text = CONFIGURATION.read_text()
    expect(holds='name = "physics"' in text and 'name = "biology"' in text, otherwise=text)
    run(f"cat {CONFIGURATION}", user="shapleyprio")
    run(f"cat {CONFIGURATION}", user="nobody", code=1)


@step
def check_says_what_is_missing() -> None:
    """`shapleyprio check` names the remedies; when they are applied, it finds no errors."""
    found = run("shapleyprio check", user="shapleyprio", code=None)
    remedy = re.search(r"sacctmgr\s+add\s+user\s+shapleyprio[^;.│]*AdminLevel=Operator", found)
    expect(holds=remedy is not None, otherwise=f"no remedy:\n{found}")
    run("sacctmgr -i add user shapleyprio account=root AdminLevel=Operator")
    settings = Path("/usr/share/shapleyprio/slurm_conf/site_factor.conf").read_text()
    with Path("/etc/slurm/slurm.conf").open("a") as file:
        file.write(settings)
    run("systemctl restart slurmctld")
    until(lambda: "UP" in run("scontrol ping", code=None), "slurmctld is away")
    found = run("shapleyprio check", user="shapleyprio", code=None)
    again = run("shapleyprio check --json", user="shapleyprio", code=None)
    expect(holds='"error"' not in again, otherwise=found)


@step
def a_dry_run_shows_what_would_be_written() -> None:
    """`daemon --once --dry-run --verbose` shows the writes, makes none and leaves no store."""
    run("shapleyprio daemon --once --dry-run")  # nor does root's
    shown = run("shapleyprio daemon --once --dry-run --verbose", user="shapleyprio")
    expect(holds="biology" in shown and "planned" in shown, otherwise=shown)
    factors = site_factors()
    expect(holds={*factors["physics"], *factors["biology"]} == {0}, otherwise=str(factors))
    left = [str(one) for one in STATE.glob("*.db*")]
    expect(holds=not left, otherwise=f"{left} was made")


@step
def systemd_starts_the_daemon_and_it_steers() -> None:
    """`systemctl enable --now shapleyprio`: biology, which lends its node, goes first."""
    run("systemctl enable --now shapleyprio")
    until(steers, "the priorities are not written into Slurm")
    status = run("systemctl status shapleyprio --no-pager")
    expect(holds="active (running)" in status, otherwise=status)
    run("shapleyprio status", user="shapleyprio")


@step
def users_ask_the_daemon() -> None:
    """A job's user gets its explanation from the daemon, another user does not."""
    run("sacctmgr -i add user games account=biology")
    may_submit("games", "biology")
    sbatch = "sbatch --parsable -A biology -n 2 -D / -o /dev/null --wrap 'sleep 3600'"
    job = run(sbatch, user="games").strip()
    for words in (f"explain {job}", f"explain {job} --url http://127.0.0.1:9817"):
        shown = run(f"shapleyprio {words}", user="games")
        expect(holds=f"Job {job} of account biology waits" in shown, otherwise=shown)
        shown = run(f"shapleyprio {words}", user="mail", code=2)
        expect(
            holds=shown.startswith(f"shapleyprio: user mail has no pending job {job}"),
            otherwise=shown,
        )
    shown = run("shapleyprio status", user="mail")
    expect(holds="physics" in shown, otherwise=shown)
    run(f"cat {CONFIGURATION}", user="mail", code=1)
    run(f"scancel {job}")


# -- upgrade


def make_older(version: str) -> Path:
    """Packs the packages anew under a lower version.

    That of the replay has its scripts only: its many files are unpacked often enough.
    """
    folder = OWN / version
    for package in BOTH:
        (archive,) = PACKAGES.glob(f"{package}_*.deb")
        unpacked = OWN / "unpacked" / package
        unpacked.mkdir(parents=True)
        run(f"dpkg-deb --control {archive} {unpacked / 'DEBIAN'}")
        if package == "shapleyprio":
            run(f"dpkg-deb --extract {archive} {unpacked}")
        control = unpacked / "DEBIAN" / "control"
        text = re.sub(r"^Version: .*", f"Version: {version}", control.read_text(), flags=re.M)
        text = re.sub(r"shapleyprio \(= .*?\)", f"shapleyprio (= {version})", text)
        control.write_text(text)
        folder.mkdir(parents=True, exist_ok=True)
        run(f"dpkg-deb -Znone -b {unpacked} {folder}/{package}.deb")
    return folder


@step
def a_stopped_daemon_stays_stopped() -> None:
    """Installing another version does not start a daemon that was stopped."""
    run("systemctl stop shapleyprio")
    folder = make_older("0.0.9-1")
    packages = " ".join(f"{folder}/{package}.deb" for package in BOTH)
    run(f"apt-get -y install --allow-downgrades {packages}")
    expect(holds=active() == "inactive", otherwise=f"the daemon is {active()}")
    run("systemctl start shapleyprio")
    until(lambda: active() == "active", "the daemon does not run")


@step
def an_upgrade_restarts_the_daemon_once() -> None:
    """An upgrade over the version before restarts the daemon once and keeps what is there."""
    with CONFIGURATION.open("a") as file:
        file.write("# the administrator's own words\n")
    configuration, started = digest(CONFIGURATION), times_started()
    sizes = json.loads(run("shapleyprio db status --json", user="shapleyprio"))
    apt(f"install {' '.join(map(str, sorted(PACKAGES.glob('*.deb'))))}")
    expect(holds=active() == "active", otherwise=f"the daemon is {active()}")
    again = times_started() - started
    expect(holds=again == 1, otherwise=f"it was started {again} times")
    expect(holds=digest(CONFIGURATION) == configuration, otherwise="the configuration changed")
    now = json.loads(run("shapleyprio db status --json", user="shapleyprio"))
    expect(holds=now["rows"]["run"] >= sizes["rows"]["run"] > 0, otherwise=f"{sizes} -> {now}")
    until(steers, "it does not steer any more")


@step
def an_upgrade_makes_the_tables() -> None:
    """An upgrade brings a store without tables to this release before a daemon starts."""
    run("systemctl stop shapleyprio")
    for file in STATE.glob("shapleyprio.db*"):
        file.unlink()
    (package,) = PACKAGES.glob("shapleyprio_*.deb")
    printed = apt(f"install --reinstall {package}")
    expect(holds="upgraded the store" in printed, otherwise=printed)
    run("systemctl start shapleyprio")
    until(lambda: active() == "active", "the daemon does not start")
    after = json.loads(run("shapleyprio db status --json", user="shapleyprio"))
    expect(holds=after["revision"] == after["head"], otherwise=str(after))
    until(steers, "it does not steer any more")


@step
def an_upgrade_survives_a_store_that_is_away() -> None:
    """If the store cannot be reached, the packages are installed all the same, with advice."""
    run("systemctl stop shapleyprio")
    text = CONFIGURATION.read_text()
    url = "sqlite:////nowhere/shapleyprio.db"
    away = re.sub(r'^#url = ".*"', f'url = "{url}"', text, count=1, flags=re.MULTILINE)
    expect(holds=url in away, otherwise=text)
    CONFIGURATION.write_text(away)
    (package,) = PACKAGES.glob("shapleyprio_*.deb")
    printed = run(f"apt-get -y install --reinstall {package}")
    expect(holds="shapleyprio db upgrade" in printed, otherwise=printed)
    expect(holds="Traceback" not in printed, otherwise=printed)
    installed = run("dpkg-query -f '${Status}' -W shapleyprio")
    expect(holds=installed == "install ok installed", otherwise=installed)
    CONFIGURATION.write_text(text)
    run("systemctl start shapleyprio")


# -- removal


@step
def removing_keeps_configuration_and_store() -> None:
    """Removal stops the daemon and keeps what an administrator or the daemon has made."""
    apt(f"remove {' '.join(BOTH)}")
    expect(holds=active() == "inactive", otherwise=f"the daemon is {active()}")
    running = run("pgrep -u shapleyprio", code=None) if Path("/usr/bin/pgrep").exists() else ""
    expect(holds=not running, otherwise=f"processes are left: {running}")
    for gone in (ENVIRONMENT, UNIT, Path("/usr/bin/shapleyprio")):
        expect(holds=not gone.exists(), otherwise=f"{gone} is left")
    for kept in (CONFIGURATION, STATE / "shapleyprio.db"):
        expect(holds=kept.exists(), otherwise=f"{kept} is gone")


@step
def installing_again_goes_on_from_there() -> None:
    """Installed again, the daemon goes on with its configuration and store."""
    (package,) = PACKAGES.glob("shapleyprio_*.deb")
    apt(f"install {package}")
    run("systemctl enable --now shapleyprio")
    until(lambda: active() == "active", "the daemon does not start")
    until(steers, "it does not steer any more")


@step
def purging_leaves_nothing_but_the_user() -> None:
    """Purge removes configuration and store; only the user stays, for Slurm knows its number."""
    apt(f"purge {' '.join(BOTH)}")
    left = sorted(everything() - BEFORE)
    ours = [path for path in left if "shapleyprio" in path]
    expect(holds=not ours, otherwise=f"left: {ours}")
    known = {"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock"}
    expect(holds=set(left) <= known, otherwise=f"left: {sorted(set(left) - known)}")
    run("id shapleyprio")


def main() -> None:
    """Runs all steps, and ends with exit code 1 at the first that fails."""
    for number, one in enumerate(STEPS, start=1):
        what = " ".join((one.__doc__ or "").split())
        began = time.monotonic()
        try:
            one()
        except StepError as error:
            print(f"FAILED {number}: {what}\n{error}")
            print(run("journalctl -n 40 --no-pager -o cat", code=None))
            sys.exit(1)
        print(f"ok {number}: {what} ({time.monotonic() - began:.0f} s)")
    print(f"{len(STEPS)} steps passed")


if __name__ == "__main__":
    main()
