"""Errors that end a command with one line and an exit code of their own."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Remedy(StrEnum):
    """What makes work possible after an error; each front end words it in its own terms."""

    SHORTER_WINDOW = "shorter_window"
    WINDOW_AT_MOST = "window_at_most"
    LONGER_WINDOW = "longer_window"
    OTHER_WINDOW = "other_window"
    FEWER_WINDOWS = "fewer_windows"
    PERIOD_AT_LEAST = "period_at_least"
    SAMPLE = "sample"
    FEWER_ORDERINGS = "fewer_orderings"
    NO_STARTS_NEEDED = "no_starts_needed"
    NAME_ORGANIZATIONS = "name_organizations"
    DEAL_USERS = "deal_users"
    NAME_PROCESSORS = "name_processors"
    FEWER_CORES = "fewer_cores"
    PART_OF_LOG = "part_of_log"
    SECONDS_OF_WINDOW = "seconds_of_window"
    GIVE_NODES = "give_nodes"
    GIVE_ACCOUNTS = "give_accounts"
    GIVE_TREE = "give_tree"
    ALLOW = "allow"
    STAND_BY = "stand_by"


class KnownError(Exception):
    """Something went wrong that a command can say in one line; anything else is a defect.

    Its text says where and what is wrong, and how to mend it where that is the same for every
    front end. What is not, such as the name of an option, is a code.

    Args:
        problem: the text.
        remedy: code of what mends it; None if the text says it.
        bound: number in the remedy, such as the seconds of `Remedy.WINDOW_AT_MOST`, or the name of
            the doubt that a front end may be told to allow.

    Attributes:
        exit_code: that the command ends with.
    """

    exit_code = 2

    def __init__(
        self, problem: str, remedy: Remedy | None = None, *, bound: int | str | None = None
    ) -> None:
        super().__init__(problem)
        self.remedy = remedy
        self.bound = bound

    def worded(self, words: Mapping[Remedy, str]) -> str:
        """Returns the text with the remedy in a front end's words.

        Args:
            words: remedy -> its words, in which ``{bound}`` stands for the number. The text
                stays alone if its remedy is missing, since the front end has nothing to offer.

        >>> error = KnownError("too long", Remedy.WINDOW_AT_MOST, bound=60)
        >>> error.worded({Remedy.WINDOW_AT_MOST: "choose a --window of {bound} s at most"})
        'too long; choose a --window of 60 s at most'
        """
        if self.remedy is None or self.remedy not in words:
            return str(self)
        return f"{self}; {words[self.remedy].format(bound=self.bound)}"


class ConfigError(KnownError):
    """The configuration cannot be used.

    Attributes:
        problems: one line for each: where, what and how to mend it.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ReplayError(KnownError):
    """A replay, or other offline work, cannot be made of this input."""


class OutputError(KnownError):
    """A file cannot be written, or not gone on from; the message names it and the way out."""
