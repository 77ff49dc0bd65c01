"""What the commands of the operations manual find on a head node; no other host is needed.

``python head_node.py TOOL ARGUMENTS...`` stands in for systemd, ssh, scp, runuser, curl and
apt-get. The variable HEADS names a folder with one for each head node, HEAD the one that we are on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

TOOLS = ("systemctl", "ssh", "scp", "runuser", "curl", "apt-get", "chgrp", "shapleyprio")
NAME = "shapleyprio.toml"
DOCUMENTED = "127.0.0.1:9817"
"""Address of metrics; here each head node has a port of its own."""

PATIENCE_SECONDS = 120.0


def folder(head: str | None = None) -> Path:
    return Path(os.environ["HEADS"], head or os.environ["HEAD"])


def address() -> str:
    return (folder() / "address").read_text()


def shapleyprio(*arguments: str) -> list[str]:
    """The command, of a daemon on a simulated Slurm."""
    text = (folder() / NAME).read_text().replace(DOCUMENTED, address())
    config = folder() / "in-use.toml"
    config.write_text(text)
    os.environ["SHAPLEYPRIO_CONFIG"] = str(config)
    record = str(Path(os.environ["HEADS"], "writes"))
    return [sys.executable, "-m", "tests.daemon.played_daemon", record, *arguments]


def pid() -> int | None:
    """The daemon's, if it runs."""
    file = folder() / "pid"
    number = int(file.read_text()) if file.exists() else 0
    state = Path(f"/proc/{number}/stat")
    runs = number and state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"
    return number if runs else None


def metrics(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def answers() -> bool:
    try:
        return bool(metrics(address()))
    except OSError:
        return False


def start() -> None:
    """As the unit does, which is ready when the daemon says so."""
    unit = Path(os.environ["UNIT"]).read_text()
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    _, *words = line.partition("=")[2].split()
    before, _, _ = " ".join(words).partition(" --config ")
    with (folder() / "log").open("ab") as log:
        process = subprocess.Popen(
            shapleyprio(*before.split()), stdout=log, stderr=log, start_new_session=True
        )
    (folder() / "pid").write_text(str(process.pid))
    until(answers)


def stop() -> None:
    number = pid()
    if number is not None:
        os.kill(number, signal.SIGTERM)
        until(lambda: pid() is None)


def until(done: object) -> None:
    assert callable(done)
    end = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if time.monotonic() > end:
            sys.exit(f"waited in vain on {folder().name}")
        time.sleep(0.05)


def systemctl(*words: str) -> None:
    verb, *rest = words
    assert rest[-1] == "shapleyprio", words
    if verb in {"stop", "restart"}:
        stop()
    if verb in {"start", "restart"} or (verb == "enable" and "--now" in rest):
        start()
    if verb == "reload":
        number = pid()
        assert number is not None, "it does not run"
        shapleyprio()
        os.kill(number, signal.SIGHUP)


def apt_get(*words: str) -> None:
    """As the package's scripts do, but for the store's tables."""
    assert words[0] == "install", words
    if pid() is not None:
        systemctl("restart", "shapleyprio")


def main() -> None:
    os.umask(0o077)  # the configuration holds a password
    tool, *words = sys.argv[1:]
    with Path(os.environ["HEADS"], "calls").open("a") as calls:
        calls.write(json.dumps([os.environ["HEAD"], tool, *words]) + "\n")
    if tool == "systemctl":
        systemctl(*words)
    elif tool == "apt-get":
        apt_get(*words)
    elif tool == "ssh":
        os.environ["HEAD"] = words[0]
        os.execvp(words[1], words[1:])
    elif tool == "scp":
        *files, target = [word for word in words if not word.startswith("-")]
        for file in files:
            if file.endswith(NAME):
                shutil.copy(folder() / NAME, folder(target.partition(":")[0]) / NAME)
    elif tool == "chgrp":
        assert words == ["shapleyprio", f"/etc/shapleyprio/{NAME}"], words
    elif tool == "runuser":
        assert words[0] == "-u", words
        assert words[2] == "--", words
        os.execvp(words[3], words[3:])
    elif tool == "curl":
        assert words[-1] == f"http://{DOCUMENTED}/metrics", words
        print(metrics(address()))
    else:
        command = shapleyprio(*words)
        os.execv(command[0], command)


if __name__ == "__main__":
    main()
