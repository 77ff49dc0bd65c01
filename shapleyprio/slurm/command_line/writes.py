"""Writes into a cluster through Slurm's own commands."""

from __future__ import annotations

import os
import pwd
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from shapleyprio.slurm.channels import CHANNELS
from shapleyprio.slurm.command_line.associations import CommandLineAssociations
from shapleyprio.slurm.command_line.commands import SlurmAnswer, SlurmCommands
from shapleyprio.slurm.command_line.complaints import cause, failure
from shapleyprio.slurm.command_line.config import configuration, ping, qos_priorities
from shapleyprio.slurm.command_line.orders import OUT_OF_TIME
from shapleyprio.slurm.port import SlurmRefusedError, unchecked
from shapleyprio.slurm.text import config as text_config
from shapleyprio.slurm.text.queue import is_target, refusals

DENIALS = ("Access/permission denied", "Invalid user id")
LEVELS = ("None", "Operator", "Administrator")

FED_AT_ONCE = 4
"""Number of scontrols that are fed at a time: while slurmctld works for one, others ask."""

ORDERS_OF_ONE = 200
"""So many orders are taken by one scontrol: it takes some before it does them."""


class _Shared(Iterator[str]):
    """Targets that several threads take, each target once.

    Args:
        targets: in the order in which they are to be taken.
    """

    def __init__(self, targets: Iterable[str]) -> None:
        self._left = deque(targets)

    def __next__(self) -> str:
        try:
            return self._left.popleft()  # as CPython does it, no other thread comes between
        except IndexError:
            raise StopIteration from None

    def clear(self) -> None:
        """Leaves nothing to be taken."""
        self._left.clear()


class CommandLineWrites:
    """The writing half of the port `Slurm`, through scontrol and sacctmgr.

    Args:
        commands: runs them.
        associations: writes priorities of accounts.

    Attributes:
        requests: how many requests to change a job were made so far.
    """

    def __init__(self, commands: SlurmCommands, associations: CommandLineAssociations) -> None:
        self.requests = 0
        self._commands = commands
        self._associations = associations

    def write(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float] = unchecked
    ) -> Mapping[str, str]:
        """Writes priorities and returns what Slurm would not change, with the reasons.

        Some refusals ("Requested partition configuration not available now") come although the
        nice was changed: read the values back to know.
        """
        if not values:
            return {}
        carrier = CHANNELS[channel].carrier
        refused = CHANNELS[channel].out_of_bounds(values)
        rest = {target: value for target, value in values.items() if target not in refused}
        if carrier == "QOS":
            return refused | self._write_qos(rest, check)
        if carrier == "account":
            return refused | self._associations.write(
                rest, lambda: self.privilege(channel) or "", check
            )
        return refused | self._write_jobs(channel, rest, check)

    def _write_jobs(
        self, channel: str, values: Mapping[str, int], check: Callable[[], float]
    ) -> dict[str, str]:
        """Feeds some scontrols with one order for each target, in the order of the values.

        A list of jobs in one order saves nothing: scontrol asks slurmctld once for each of them.
        """
        ping(self._commands)
        name = _key(channel)
        refused = {target: "names no job" for target in values if not is_target(target)}
        left = _Shared(target for target in values if target not in refused)
        feeds = min(FED_AT_ONCE, 1 + len(values) // ORDERS_OF_ONE)

        asked: list[str] = []

        def feed(_: int) -> tuple[dict[str, str], str | None]:
            named: dict[str, str] = {}  # order -> target

            def orders() -> Iterator[str]:
                for target in left:
                    order = f"update JobId={target} {name}={values[target]}"
                    named[order] = target
                    asked.append(target)
                    yield order

            try:
                answer = self._commands.feed("scontrol", orders(), check=check)
            except BaseException:
                left.clear()  # the others are not to go on, either
                raise
            return _complaints(answer, named)

        try:
            with ThreadPoolExecutor(feeds) as pool:
                answers = list(pool.map(feed, range(feeds)))
        finally:
            self.requests += len(asked)
        for found, _ in answers:
            refused |= found
        ended = next((why for _, why in answers if why is not None), OUT_OF_TIME)
        refused |= dict.fromkeys(left, ended)
        self.check_privilege(channel, values, refused)
        return refused

    def check_privilege(
        self, channel: str, values: Mapping[str, int], refused: Mapping[str, str]
    ) -> None:
        """Finds out whether nothing was written because we may not.

        Args:
            channel: that was written to.
            values: target -> new value.
            refused: target -> why it has not got it.

        Raises:
            SlurmRefusedError: so it is.
        """
        if values and all(refused.get(target, "").startswith(DENIALS) for target in values):
            why = next(iter(refused.values()))
            raise SlurmRefusedError(
                f"Slurm does not let us change any job's {_key(channel)} ({why}):"
                f" {self.privilege(channel) or 'see the log of slurmctld'}"
            )

    def _write_qos(self, values: Mapping[str, int], check: Callable[[], float]) -> dict[str, str]:
        refused: dict[str, str] = {}
        for name, value in values.items():
            answer = self._commands.run(
                "sacctmgr", "-i", "modify", "qos", "where", f"name={name}", "set",
                f"Priority={value}", within=check(),
            )  # fmt: skip
            if answer.code != 0:
                if "Nothing modified" not in answer.output + answer.complaints:
                    raise failure("sacctmgr", answer.said, answer.code)
                refused[name] = cause(answer.said, answer.code)
        if refused:
            present = qos_priorities(self._commands)
            refused = {
                name: why if name in present else "no such QOS"
                for name, why in refused.items()
                if present.get(name) != values[name]
            }
        return refused

    def privilege(self, channel: str) -> str | None:
        """Returns None if we may write to the channel, else what is missing and how to get it."""
        number = os.geteuid()
        slurm_user = text_config.user_number(configuration(self._commands).get("SlurmUser", ""))
        if number in {0, slurm_user}:
            return None
        name = _user_name(number)
        shown = self._commands.read("sacctmgr", "-nP", "show", "user", name, "format=AdminLevel")
        level = shown.strip() or "None"
        needed = CHANNELS[channel].admin_level
        if level in LEVELS and LEVELS.index(level) >= LEVELS.index(needed):
            return None
        verb = f"modify user {name} set" if shown.strip() else f"add user {name} account=root"
        return (
            f"{name} has AdminLevel {level} and needs {needed}: sacctmgr {verb} AdminLevel={needed}"
        )


def _complaints(answer: SlurmAnswer, named: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    """Returns what scontrol did not change, and why it ended before it read its orders, if so.

    Args:
        answer: of all scontrols of a feed.
        named: order -> its target.
    """
    undone = {named[order]: why for order, why in answer.undone.items()}
    if answer.code == 0:
        return undone, None
    refused = refusals(answer.complaints, named.values())
    if refused or "No error" in answer.complaints:
        return undone | refused, None
    ended = cause(answer.said, answer.code)
    return dict.fromkeys(named.values(), ended), ended


def _key(channel: str) -> str:
    """Returns what scontrol calls that which a channel writes to jobs."""
    field = CHANNELS[channel].job_field
    assert field is not None, f"channel {channel} writes no jobs"
    return field.scontrol


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
