from __future__ import annotations

import string
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapleyprio.common.errors import ConfigError
from shapleyprio.config import Address, Config, config_reference, load_config
from shapleyprio.config.reference import example_of, sections
from shapleyprio.config.toml import lines_of, literal

ONE = '[[organization]]\nname = "physics"\n'

FOUR_SLASHES = "the file's path must be absolute: sqlite:////its/path, with four slashes"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.toml"


def problems(file: Path, text: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    return [line.removeprefix(f"{file}:") for line in caught.value.problems]


def loaded(file: Path, text: str) -> Config:
    file.write_text(text, encoding="utf-8")
    return load_config(file)


def test_one_organization_is_configuration_enough(file: Path) -> None:
    config = loaded(file, ONE)
    assert [one.name for one in config.organizations] == ["physics"]
    assert config.fairness.tres == "cpu"
    assert config.fairness.horizon == 30 * 86_400
    assert config.push.channel == "site_factor"
    assert config.push.influence is None
    assert config.service.poll_interval == 30
    assert config.metrics.address == Address("127.0.0.1", 9817)


def test_every_key_can_be_given(file: Path) -> None:
    config = loaded(
        file,
        """
        [slurm]
        cluster = "c1"
        bin_directory = "/opt/slurm/bin"
        timeout = "1m30s"
        [fairness]
        weight = "gres/gpu"
        horizon = "unlimited"
        since = 2026-01-01
        [push]
        channel = "qos"
        influence = 1000
        [service]
        poll_interval = "1m"
        overlap = "2h"
        keep_history = "1w"
        log_format = "json"
        log_level = "debug"
        [store]
        url = "sqlite:////var/here.db"
        [metrics]
        address = "[::1]:99"
        [[organization]]
        name = "physics"
        accounts = ["physics", "astro"]
        sub_accounts = false
        partitions = ["p"]
        nodes = ["n[1-3],m1"]
        qos = "physics"
        users = [7, "honbu"]
        groups = [1]
        queues = ["long"]
        processors = 0
        """,
    )
    assert config.slurm.timeout == 90
    assert config.slurm.bin_directory == Path("/opt/slurm/bin")
    assert config.fairness.horizon is None
    assert config.fairness.since == 1_767_225_600
    assert config.fairness.tres == "gres/gpu"
    assert config.push.influence == 1000
    assert config.metrics.address == Address("::1", 99)
    assert config.organizations[0].accounts == ("physics", "astro")
    assert config.organizations[0].users == ("7", "honbu")
    assert config.organizations[0].processors == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ONE + 'partitons = ["p"]',
            "3: organization[1].partitons: unknown key; did you mean 'partitions'?",
        ),
        (
            '[fairness]\n\nhorizon = "30 lightyears"\n' + ONE,
            "3: fairness.horizon: '30 lightyears' is not a duration or \"unlimited\"; "
            'write for instance "30d"',
        ),
        (
            "fairness.horizon = 30\n" + ONE,
            '1: fairness.horizon: 30 is not a duration or "unlimited"; write for instance "30d"',
        ),
        (
            '[service]\noverlap = "5"\n' + ONE,
            "2: service.overlap: '5' is not a duration (give the unit); write for instance \"1h\"",
        ),
        (
            '[drift]\ntime_limit = "60d"\n' + ONE,
            "2: drift.time_limit: '60d' is not a duration up to 1d (no longer than 1d); write for "
            'instance "10m"',
        ),
        (
            '[drift]\ninterval = "9000y"\n' + ONE,
            "2: drift.interval: '9000y' is not a duration, or 0 or \"off\" (no longer than 100 "
            'years); write for instance "1h"',
        ),
        (
            '[push]\nhorizon = "3d"\n' + ONE,
            "2: push.horizon: unknown key; did you mean 'fairness.horizon'?",
        ),
        (
            "[store]\ncolor = 1\n" + ONE,
            "2: store.color: unknown key; remove it, or take one of url, journal",
        ),
        (
            '[fairnes]\nhorizon = "3d"\n' + ONE,
            "1: fairnes: unknown table; did you mean 'fairness'?",
        ),
        (
            '[[organizations]]\nname = "a"\n' + ONE,
            "1: organizations: unknown table; did you mean [[organization]]?",
        ),
        (
            '[organization]\nname = "a"',
            "1: organization: is not a list of tables; "
            "write [[organization]], with two brackets each",
        ),
        (
            "fairness = 3\n" + ONE,
            "1: fairness: is not a table; write [fairness] and its keys on the lines below",
        ),
        (
            ONE + "[[organization]]\naccounts = []",
            '3: organization[2].name: is missing; add for instance name = "physics"',
        ),
        (
            ONE + 'accounts = "physics"',
            "3: organization[1].accounts: 'physics' is not a list of names; "
            'write for instance ["physics"]',
        ),
        (
            '[[organization]]\nname = "physics"\npartitions = ["pa", "pb,pc"]',
            '3: organization[1].partitions: ["pa", "pb,pc"] is not a list of names '
            "('pb,pc' has a comma; write each name by itself); write for instance "
            '["physics"]',
        ),
        (
            '[[pool]]\nname = "all"\nclusters = ["c1,c2"]\npartitions = ["gpu"]',
            '3: pool[1].clusters: ["c1,c2"] is not a list of names '
            "('c1,c2' has a comma; write each name by itself); write for instance "
            '["c1", "c2"]',
        ),
        (
            ONE + 'nodes = ["n[1-"]',
            '3: organization[1].nodes: ["n[1-"] is not a list of host lists '
            '(missing bracket: "n[1-"); write for instance ["n[001-016]"]',
        ),
        (
            ONE + 'nodes = ["n[1-9999999999]"]',
            '3: organization[1].nodes: ["n[1-9999999999]"] is not a list of host lists '
            '(more than 100,000 hosts); write for instance ["n[001-016]"]',
        ),
        (
            "[fairness]\nsince = 2026-01-01T00:00:00\n" + ONE,
            "2: fairness.since: 2026-01-01 00:00:00 is not a date, or a date and time with its "
            "zone (the time zone is missing); write for instance "
            '"2026-01-01T00:00:00+01:00"',
        ),
        *(
            (
                f'[store]\nurl = "{url}"\n{ONE}',
                f"2: store.url: the value is not a database URL as SQLAlchemy takes them ({why}); "
                'write for instance "sqlite:////var/lib/shapleyprio/shapleyprio.db"',
            )
            for url, why in (
                (
                    "nonsense://user:secret@host/",
                    "'nonsense' cannot be used; take one of sqlite, postgresql, mysql, mariadb",
                ),
                (
                    "postgresql+nonsense://user:secret@host/",
                    "'nonsense' is not a driver for postgresql; leave it out",
                ),
                (
                    "postgresql://user:se@cret@host/",
                    "it has several @; in a password write @ as %40, and % as %25",
                ),
                (
                    "postgresql://user:secret@host:x/",
                    "it cannot be read; write a file as sqlite:////its/path",
                ),
                ("sqlite:///var/lib/shapleyprio.db", FOUR_SLASHES),
                ("sqlite:///:memory:", FOUR_SLASHES),
                ("sqlite://", FOUR_SLASHES),
            )
        ),
        (
            "[push]\ninfluence = true\n" + ONE,
            '2: push.influence: true is not "strict" or a positive whole number; '
            "write for instance 10000",
        ),
        (
            ONE + "[[organization]]\n" + 'name = "physics"',
            "4: organization[2].name: 'physics' is already taken by organization[1]; "
            "leave it to one of them",
        ),
        (
            ONE + 'parent = "scence"\n[[organization]]\nname = "science"',
            "3: organization[1].parent: 'scence' is not an organization; did you mean 'science'?",
        ),
        (
            ONE + 'parent = "law"',
            "3: organization[1].parent: 'law' is not an organization; give it a table, too",
        ),
        (
            ONE + 'parent = "physics"',
            "3: organization[1].parent: is the organization itself; leave it out",
        ),
        (
            ONE
            + 'parent = "science"\n[[organization]]\nname = "science"\nparent = "all"\n'
            + '[[organization]]\nname = "all"',
            "3: organization[1].parent: 'science' has the parent 'all'; there are only two levels, "
            "so name that one",
        ),
        (
            ONE + "users = [true]",
            "3: organization[1].users: [true] is not a list of names or numbers; "
            "write for instance [3, 17]",
        ),
        (
            ONE + "processors = -1",
            "3: organization[1].processors: -1 is not a whole number from 0 on "
            "(from 0 to 2147483647); write for instance 64",
        ),
        (
            ONE + "procesors = 5",
            "3: organization[1].procesors: unknown key; did you mean 'processors'?",
        ),
        (
            '[push]\nchannel = "qos"\n' + ONE + 'accounts = ["a"]',
            '3: organization[1].qos: is missing, but push.channel is "qos"; '
            "name the QOS its jobs run under, or choose another channel",
        ),
        (
            "[fairness]\nhorizon = 30d\n",
            "2: not valid TOML: Expected newline or end of document after a statement "
            'in column 13; strings need quotes ("30d"), lists brackets (["a", "b"])',
        ),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_its_remedy(
    file: Path, text: str, expected: str
) -> None:
    assert problems(file, text) == [expected]


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file(file: Path) -> None:
    text = '[store]\nurl = "x"\n[fairness]\nweight = "cpuss"\n' + ONE + 'partition = "p"'
    assert [line.split(":")[0] for line in problems(file, text)] == ["2", "4", "7"]


def test_an_account_that_is_left_out_and_claimed_is_refused(file: Path) -> None:
    text = '[fairness]\nleave_out_accounts = ["t", "a"]\n' + ONE + 'accounts = ["a"]'
    assert problems(file, text) == [
        "5: organization[1].accounts: 'a' is in fairness.leave_out_accounts, too; "
        "take it out of one of them"
    ]


def test_estimates_that_would_mostly_be_too_old_are_refused(file: Path) -> None:
    text = '[estimation]\nrecompute = "20m"\n' + ONE
    assert problems(file, text) == [
        "2: estimation.recompute: is more than half of longest_age (900 s), so directcontr would "
        "rank now and then; make it shorter, or longest_age at least twice as long"
    ]
    file.write_text('[fairness]\nrule = "directcontr"\n' + text)
    load_config(file)
    file.write_text('[estimation]\nrecompute = "20m"\nlongest_age = "40m"\n' + ONE)
    load_config(file)


def test_an_account_of_two_organizations_is_refused(file: Path) -> None:
    text = ONE + 'accounts = ["a"]\n[[organization]]\nname = "b"\naccounts = [\n"c",\n"a"]'
    assert problems(file, text) == [
        "6: organization[2].accounts: 'a' is already taken by organization[1]; "
        "leave it to one of them"
    ]


@pytest.mark.parametrize("key", ["users", "groups", "queues"])
def test_what_a_log_numbers_belongs_to_one_organization_however_it_is_written(
    file: Path, key: str
) -> None:
    text = ONE + f'{key} = [7, 7]\n[[organization]]\nname = "b"\n{key} = ["8", "7"]'
    assert problems(file, text) == [
        f"6: organization[2].{key}: '7' is already taken by organization[1]; "
        "leave it to one of them"
    ]


@pytest.mark.parametrize("name", ["", " ", " physics", "a\\nb"])
def test_an_organization_needs_a_name_that_can_be_printed(file: Path, name: str) -> None:
    assert "is not a name" in problems(file, f'[[organization]]\nname = "{name}"')[0]


@pytest.mark.parametrize("value", ["", "0s", "-3d", "0.5s", "soon"])
def test_durations_are_whole_seconds_above_zero(file: Path, value: str) -> None:
    answer = problems(file, f'[slurm]\ntimeout = "{value}"\n' + ONE)
    assert "is not a duration" in answer[0]


@pytest.mark.parametrize("value", ["9817", ":1", "h:0", "h:65536", "h:http"])
def test_addresses_have_a_host_and_a_port(file: Path, value: str) -> None:
    answer = problems(file, f'[metrics]\naddress = "{value}"\n' + ONE)
    assert "is not an address HOST:PORT" in answer[0]


def test_metrics_can_be_off(file: Path) -> None:
    assert loaded(file, '[metrics]\naddress = "off"\n' + ONE).metrics.address is None


def test_a_configuration_without_organizations_is_refused(file: Path) -> None:
    assert "there is none; add an [[organization]] table" in problems(file, "")[0]


def test_a_missing_file_shows_how_to_make_one(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file; `shapleyprio init --config .* writes"):
        load_config(file)


def test_a_directory_and_binary_data_are_no_configuration(tmp_path: Path, file: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_config(file)


def test_windows_line_ends_and_byte_order_marks_do_not_matter(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + ONE.replace("\n", "\r\n").encode())
    assert load_config(file).organizations[0].name == "physics"


def test_a_long_wrong_value_is_cut(file: Path) -> None:
    answer = problems(file, f'[fairness]\nweight = "{"x" * 1000}"\n' + ONE)
    assert len(answer[0]) < 250


def test_every_key_has_a_meaning_and_an_example_that_loads() -> None:
    for table, section in sections().items():
        for name, field in section.model_fields.items():
            assert field.description, f"{table}.{name}"
            read = tomllib.loads(f"x = {literal(example_of(field))}")["x"]
            required = {
                each: example_of(other)
                for each, other in section.model_fields.items()
                if other.is_required()
            }
            section.model_validate(required | {name: read})


def test_the_reference_names_every_key() -> None:
    reference = config_reference()
    for table, section in sections().items():
        part = reference[reference.index(f"[{table}]") :]
        for name in section.model_fields:
            assert f"\n| `{name}` | " in part


KEYS = st.text(string.ascii_lowercase, min_size=1, max_size=3)
VALUES = st.recursive(
    st.integers() | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(KEYS, VALUES), st.booleans())
def test_every_key_is_found_on_its_line(values: dict[str, Any], spread: bool) -> None:
    lines, expected = ["# some comment", "", "[table]"], {}
    for key, value in values.items():
        expected[key] = len(lines) + 1
        text = f"{key} = {literal(value)} # comment"
        if spread and isinstance(value, list):
            items = [f"  {literal(item)}," for item in value]
            text = "\n".join([f"{key} = [ # [", *items, "]"])
        lines += text.split("\n")
    text = "\n".join(lines)
    assert tomllib.loads(text) == {"table": values}
    found = lines_of(text)
    assert {key: found["table", key] for key in values} == expected


@given(VALUES)
def test_what_is_written_reads_back(value: Any) -> None:
    assert tomllib.loads(f"x = {literal(value)}") == {"x": value}
