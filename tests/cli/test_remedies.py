"""Errors of offline work end with what the front end at hand can change."""

from __future__ import annotations

import pickle
import re

import click
import pytest

from shapleyprio.cli import main
from shapleyprio.cli.options.refusals import COMMAND_REMEDIES, message_of, remedies_of
from shapleyprio.common.errors import Remedy, ReplayError
from shapleyprio.lab.cli.trial import command as trial


def test_the_command_line_words_every_remedy() -> None:
    assert {remedy for words in COMMAND_REMEDIES.values() for remedy in words} == set(Remedy)


@pytest.mark.parametrize("name", COMMAND_REMEDIES)
def test_every_option_that_a_remedy_names_is_one_of_the_command(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    for words in remedies_of(name).values():
        assert set(re.findall(r"--[a-z-]+", words)) <= known, words


def test_every_key_that_a_remedy_of_trials_names_is_an_option_of_a_trial() -> None:
    known = {option for parameter in trial.params for option in parameter.opts}
    for words in remedies_of("trials").values():
        assert {f"--{key}" for key in re.findall(r"`([a-z-]+)`", words)} <= known, words


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("replay", "too long; choose a --window of 60 s at most"),
        ("experiment", "too long; choose a shorter --length"),
        ("trials", "too long; choose a `window` of 60 s at most in LIST"),
        ("bench", "too long"),
    ],
)
def test_a_command_names_its_own_options(command: str, message: str) -> None:
    error = ReplayError("too long", Remedy.WINDOW_AT_MOST, bound=60)
    assert message_of(error, command) == message


def test_an_error_without_a_code_says_it_all() -> None:
    assert message_of(ReplayError("no such file; name another"), "replay").endswith("another")
    assert message_of(ValueError("x"), None) == "x"


def test_a_remedy_a_front_end_does_not_have_is_left_out() -> None:
    assert ReplayError("too long", Remedy.SAMPLE).worded({}) == "too long"


def test_an_error_from_another_process_keeps_its_remedy() -> None:
    error = ReplayError("too long", Remedy.WINDOW_AT_MOST, bound=60)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.remedy, copy.bound) == ("too long", Remedy.WINDOW_AT_MOST, 60)
