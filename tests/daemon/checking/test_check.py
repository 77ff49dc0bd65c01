from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shapleyprio.cli import check as check_command
from shapleyprio.cli import main
from shapleyprio.config import Config
from shapleyprio.daemon.checking.check import check
from shapleyprio.daemon.estimation import worker
from shapleyprio.lab.simulated import DEFAULT_SETTINGS, SimulatedSlurm, SimulatedSpec
from shapleyprio.slurm.findings import Finding, Severity
from shapleyprio.slurm.layout import Layout, PrioritySettings
from shapleyprio.slurm.port import AdapterInUse, Controller, Malformed, SlurmRefusedError

QUIET = replace(DEFAULT_SETTINGS, weights={"Age": 0, "QOS": 0})
NOW = 1_800_000_000
BY_DIRECTCONTR = {"rule": "directcontr"}


@dataclass
class Cluster(SimulatedSlurm):
    """A simulated cluster whose clock, backlog and layout can be changed."""

    settings: PrioritySettings = QUIET
    qos: Mapping[str, int] | None = None
    skew: int = 0
    backlog: int = 0
    layout_changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(
            SimulatedSpec(
                cluster="c1",
                nodes={"a1": 4, "a2": 4, "b1": 4},
                partitions={"pa": ["a1", "a2"], "pb": ["b1"], "all": ["a1", "a2", "b1"]},
                accounts={"physics": None, "biology": None, "virus": "biology"},
                qos=self.qos,
                settings=self.settings,
            ),
            now=NOW,
        )

    def controller(self) -> Controller:
        return replace(super().controller(), time=NOW + self.skew, accounting_backlog=self.backlog)

    def layout(self) -> Layout:
        return replace(super().layout(), **self.layout_changes)


PHYSICS = {"name": "physics", "accounts": ["physics"], "partitions": ["pa"]}
BIOLOGY = {"name": "biology", "accounts": ["biology"], "nodes": ["b1"]}


def config(*organizations: dict[str, Any], **sections: dict[str, Any]) -> Config:
    return Config.model_validate({"organization": organizations or (PHYSICS, BIOLOGY)} | sections)


def found(configured: Config, slurm: SimulatedSlurm | None = None) -> dict[str, Finding]:
    findings = check(configured, slurm or Cluster(), NOW)
    assert all(one.remedy and "\n" not in one.message + one.remedy for one in findings)
    return {one.subject: one for one in findings}


def test_a_good_configuration_gives_no_findings() -> None:
    assert found(config()) == {}


@pytest.mark.parametrize(
    ("kind", "wrong", "near"),
    [("accounts", "phisics", "physics"), ("partitions", "paa", "pa"), ("nodes", "b11", "b1")],
)
def test_unknown_names_are_errors_with_the_nearest_known_one(
    kind: str, wrong: str, near: str
) -> None:
    findings = check(config(PHYSICS, BIOLOGY | {kind: [wrong]}), Cluster(), NOW)
    assert findings[0] == Finding(
        Severity.ERROR,
        "organization biology",
        f"Slurm has no {kind.removesuffix('s')} {wrong}",
        f"did you mean {near!r}?",
    )


def test_a_name_like_no_other_is_pointed_to_the_list() -> None:
    findings = check(config(PHYSICS, BIOLOGY | {"accounts": ["zzzz"]}), Cluster(), NOW)
    assert findings[0].remedy == "correct the name; `sacctmgr show account` lists them"


def test_nodes_owned_twice_are_an_error() -> None:
    finding = found(config(PHYSICS, BIOLOGY | {"partitions": ["pa"]}))["nodes a[1-2]"]
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("owned by physics and biology")


def test_nodes_of_nobody_are_a_warning() -> None:
    finding = found(config(PHYSICS | {"partitions": [], "nodes": ["a1"]}, BIOLOGY))["nodes a2"]
    assert finding.severity is Severity.WARNING


def test_accounts_of_nobody_are_a_warning() -> None:
    configured = config(PHYSICS, BIOLOGY | {"sub_accounts": False})
    assert found(configured)["accounts virus"].severity is Severity.WARNING


def test_a_long_list_of_accounts_is_cut() -> None:
    accounts = dict.fromkeys([f"x{number}" for number in range(30)])
    findings = found(config(), Cluster(layout_changes={"accounts": accounts}))
    assert any(subject.endswith("x7 and 22 more") for subject in findings)


def test_organizations_that_only_lend_or_only_borrow_are_reported() -> None:
    findings = found(config(PHYSICS | {"accounts": []}, BIOLOGY | {"nodes": []}))
    assert findings["organization physics"].severity is Severity.NOTICE
    assert findings["organization biology"].severity is Severity.WARNING


def test_a_department_shares_its_facultys_nodes_and_a_faculty_may_have_no_accounts() -> None:
    science = {"name": "science", "partitions": ["pa"]}
    physics = {"name": "physics", "accounts": ["physics"], "parent": "science"}
    assert (
        not {"organization science", "organization physics"}
        & found(config(science, physics, BIOLOGY)).keys()
    )
    only_named = {"name": "science"}
    findings = found(config(only_named, physics, BIOLOGY))
    assert "contributes nothing" in findings["organization physics"].message
    assert "organization science" in findings


def test_another_cluster_is_an_error() -> None:
    finding = found(config(slurm={"cluster": "c2"}))["slurm.cluster"]
    assert finding.severity is Severity.ERROR
    assert found(config(slurm={"cluster": "c1"})) == {}


def test_a_weight_that_no_node_offers_is_an_error() -> None:
    configured = config(fairness=BY_DIRECTCONTR | {"weight": "gres/gpu"})
    finding = found(configured)["fairness.weight"]
    assert finding.severity is Severity.ERROR
    assert finding.remedy == "choose what the nodes offer: billing, cpu"


def test_owned_nodes_that_offer_nothing_of_the_weight_are_noticed() -> None:
    nodes = dict(Cluster().layout().nodes)
    nodes["b1"] = replace(nodes["b1"], tres={"gres/gpu": 8})
    slurm = Cluster(layout_changes={"nodes": nodes})
    assert found(config(), slurm)["nodes b1"].severity is Severity.NOTICE


def test_priority_basic_is_an_error() -> None:
    finding = found(config(), Cluster(replace(QUIET, type="priority/basic")))["PriorityType"]
    assert finding.severity is Severity.ERROR


WEIGHTS = "priority weights"


def test_what_strict_order_drowns_is_noticed() -> None:
    slurm = Cluster(replace(QUIET, weights={"Age": 1000, "FairShare": 5000}))
    finding = found(config(), slurm)[WEIGHTS]
    assert finding.severity is Severity.NOTICE
    assert "6000 points to a job (FairShare 5000, Age 1000)" in finding.message


def test_weights_that_strict_order_cannot_outweigh_are_an_error() -> None:
    finding = found(config(), Cluster(replace(QUIET, weights={"Age": 2**31})))[WEIGHTS]
    assert finding.severity is Severity.ERROR
    assert "strict order cannot be kept" in finding.message


@pytest.mark.parametrize(
    ("age", "severity", "shown"),
    [
        (400, Severity.NOTICE, "order the jobs within an organization only"),
        (600, Severity.NOTICE, "put neighbors out of order"),
        (1000, Severity.WARNING, "drown the whole order"),
    ],
)
def test_a_limited_influence_is_held_against_the_other_weights(
    age: int, severity: Severity, shown: str
) -> None:
    configured = config(PHYSICS, BIOLOGY, {"name": "third"}, push={"influence": 1000})
    finding = found(configured, Cluster(replace(QUIET, weights={"Age": age})))[WEIGHTS]
    assert finding.severity is severity
    assert shown in finding.message


def test_a_site_factor_plugin_is_a_warning_for_that_channel_only() -> None:
    slurm = Cluster(replace(QUIET, site_factor_plugin="site_factor/own"))
    assert found(config(), slurm)["PrioritySiteFactorPlugin"].severity is Severity.WARNING
    assert "PrioritySiteFactorPlugin" not in found(config(push={"channel": "nice"}), slurm)


def test_users_can_change_nice() -> None:
    assert found(config(push={"channel": "nice"}))["push.channel"].severity is Severity.NOTICE


def test_what_users_make_of_our_nice_must_be_distinguishable() -> None:
    slurm = Cluster(replace(QUIET, user_top=True))
    finding = found(config(push={"channel": "nice"}), slurm)["SchedulerParameters"]
    assert finding.severity is Severity.ERROR
    assert "enable_user_top" in finding.message
    assert "SchedulerParameters" not in found(config(), slurm)


QOS = config(PHYSICS | {"qos": "p"}, BIOLOGY | {"qos": "b"}, push={"channel": "qos"})
EXACT = replace(QUIET, weights={"QOS": 1}, flags=frozenset({"NO_NORMAL_QOS"}))
ALL_QOS = {"normal": 0, "p": 0, "b": 0}


def test_a_good_qos_channel_gives_no_findings() -> None:
    assert found(QOS, Cluster(EXACT, ALL_QOS)) == {}


def test_an_unknown_qos_is_an_error() -> None:
    finding = found(QOS, Cluster(EXACT, {"p": 0, "normal": 0}))["organization biology"]
    assert finding.severity is Severity.ERROR
    assert finding.remedy == "make it: sacctmgr add qos b"


def test_a_qos_without_weight_is_an_error() -> None:
    assert found(QOS, Cluster(QUIET, ALL_QOS))["PriorityWeightQOS"].severity is Severity.ERROR


def test_normalized_qos_can_be_drowned() -> None:
    settings = replace(QUIET, weights={"QOS": 1000, "Age": 600})
    finding = found(QOS, Cluster(settings, ALL_QOS))[WEIGHTS]
    assert finding.severity is Severity.ERROR
    assert "PriorityFlags=NO_NORMAL_QOS" in finding.remedy


def test_a_long_calculation_period_delays_qos() -> None:
    slurm = Cluster(replace(EXACT, calc_period_seconds=300), ALL_QOS)
    assert found(QOS, slurm)["PriorityCalcPeriod"].severity is Severity.WARNING


def test_jobs_under_another_qos_are_reported() -> None:
    slurm = Cluster(EXACT, ALL_QOS)
    slurm.submit("physics", processing_time=5, qos="normal")
    slurm.submit("virus", processing_time=5, qos="b")
    findings = found(QOS, slurm)
    assert list(findings) == ["organization physics"]
    assert "1 of its pending jobs are under QOS normal" in findings["organization physics"].message


def test_missing_privileges_are_an_error() -> None:
    slurm = Cluster()
    slurm.missing_privileges["site_factor"] = "needs Operator"
    finding = found(config(), slurm)["privileges"]
    assert finding.severity is Severity.ERROR
    assert "needs Operator" in finding.message


@pytest.mark.parametrize(
    ("skew", "shown"),
    [(6, "6 s ahead of"), (-60, "60 s behind")],
)
def test_clock_skew_is_a_warning(skew: int, shown: str) -> None:
    finding = found(config(), Cluster(skew=skew))["clock"]
    assert finding.severity is Severity.WARNING
    assert shown in finding.message


@pytest.mark.parametrize("skew", [5, -5])
def test_five_seconds_of_clock_skew_are_none(skew: int) -> None:
    assert found(config(), Cluster(skew=skew)) == {}


def test_an_accounting_backlog_is_a_warning() -> None:
    assert found(config(), Cluster(backlog=5000))["accounting"].severity is Severity.WARNING


def test_waiting_jobs_of_accounts_that_accounting_does_not_know_are_a_warning() -> None:
    slurm = Cluster(layout_changes={"accounts": {"physics": None, "biology": None}})
    slurm.submit("biology", processing_time=9)
    assert found(config(), slurm) == {}
    slurm.submit("virus", processing_time=9)
    finding = found(config(), slurm)["accounts virus"]
    assert finding.severity is Severity.WARNING
    assert "1 pending job" in finding.message


def test_lines_that_cannot_be_read_are_a_warning() -> None:
    slurm = Cluster()
    slurm.malformed.append(Malformed("squeue", "garbage", "too short"))
    finding = found(config(), slurm)["squeue"]
    assert finding.severity is Severity.WARNING
    assert "too short: 'garbage'" in finding.message


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmdbd"])
def test_slurm_away_is_a_finding_of_its_own(daemon: Any) -> None:
    slurm = Cluster()
    slurm.take_down(daemon)
    findings = found(config(), slurm)
    assert list(findings) == ["Slurm"]
    assert f"{daemon} does not answer" in findings["Slurm"].message


@pytest.mark.parametrize("method", ["privilege", "pending"])
def test_a_refusal_is_a_finding_and_the_rest_is_checked(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def refuse(*_: object) -> None:
        raise SlurmRefusedError("Access denied")

    monkeypatch.setattr(Cluster, method, refuse)
    findings = found(config(PHYSICS), Cluster())
    assert "Access denied" in findings["Slurm"].message
    assert "nodes b1" in findings


def test_the_worst_comes_first() -> None:
    configured = config(
        PHYSICS | {"accounts": ["x"]}, BIOLOGY | {"accounts": []}, push={"channel": "nice"}
    )
    severities = [one.severity for one in check(configured, Cluster(skew=99), NOW)]
    assert severities == sorted(severities, key=list(Severity).index)
    assert set(severities) == set(Severity)


PHYSICS_FILE = '[[organization]]\nname = "p"\naccounts = ["physics"]\npartitions = ["pa"]\n'
BIOLOGY_FILE = '[[organization]]\nname = "b"\naccounts = ["biology"]\nnodes = ["b1"]\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (PHYSICS_FILE + BIOLOGY_FILE, 0),
        ('push.channel = "nice"\n' + PHYSICS_FILE + BIOLOGY_FILE, 0),
        (PHYSICS_FILE, 1),
        (PHYSICS_FILE + BIOLOGY_FILE.replace("b1", "b2"), 3),
        (PHYSICS_FILE + "nonsense = 1", 2),
    ],
)
def test_exit_codes_show_the_worst_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, code: int
) -> None:
    slurm = Cluster(skew=int(time.time()) - NOW)
    monkeypatch.setattr(check_command, "connect", lambda _: slurm)
    file = tmp_path / "c.toml"
    file.write_text(f'store.url = "sqlite:///{tmp_path}/store.db"\nmetrics.address = "off"\n{text}')
    done = CliRunner().invoke(main, ["check", "--config", str(file)])
    assert done.exit_code == code, done.output
    shown = CliRunner().invoke(main, ["check", "--json"], env={"SHAPLEYPRIO_CONFIG": str(file)})
    assert shown.exit_code == code
    if code != 2:
        read = json.loads(shown.stdout)
        assert (read["errors"] > 0) == (code == 3)
        for one in read["findings"]:
            assert f"{one['severity']}: {one['subject']}: {one['message']}" in done.stdout


# -- estimates


def test_a_rule_that_estimates_warns_where_numpy_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "find_spec", {"numpy": None}.get)
    assert found(config(fairness=BY_DIRECTCONTR)) == {}
    slurm = Cluster()
    slurm.take_down("slurmctld")
    finding = found(config(), slurm)["fairness.rule"]
    assert finding.severity is Severity.WARNING
    assert "numpy is missing here: directcontr ranks" in finding.message
    assert "pip install 'shapleyprio[replay]'" in finding.remedy


def test_a_weight_for_which_waiting_jobs_do_not_count_is_noticed() -> None:
    assert found(config(fairness=BY_DIRECTCONTR | {"weight": "billing"})) == {}
    finding = found(config(fairness={"weight": "billing"}))["fairness.weight"]
    assert finding.severity is Severity.NOTICE
    assert "units of billing" in finding.message


# -- Slurm itself


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("21.08.8-2", "release 21.08.8-2 is older than 22.05, the oldest release"),
        ("26.11.0", "release 26.11.0 is newer than 26.05, the newest release"),
        ("", "release  is not a known release"),
    ],
)
def test_a_release_outside_the_tested_ones_is_a_warning(version: str, shown: str) -> None:
    finding = found(config(), Cluster(layout_changes={"version": version}))["Slurm"]
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith(shown)


@pytest.mark.parametrize("version", ["22.05.8", "23.11.10", "26.05.5"])
def test_a_release_between_the_tested_ones_is_no_finding(version: str) -> None:
    assert found(config(), Cluster(layout_changes={"version": version})) == {}


def test_an_adapter_that_stands_in_for_another_is_a_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = AdapterInUse(name="command_line", instead_of="pyslurm", why="it is for another Slurm")
    slurm = Cluster()
    monkeypatch.setattr(slurm, "adapter", lambda: used)
    finding = found(config(), slurm)["slurm.adapter"]
    assert finding.severity is Severity.NOTICE
    assert finding.message == "command_line is used instead of pyslurm: it is for another Slurm"
    assert 'set slurm.adapter to "command_line"' in finding.remedy


def test_accounts_that_slurm_does_not_enforce_are_an_error() -> None:
    slurm = Cluster(layout_changes={"enforces_accounts": False})
    finding = found(config(), slurm)["AccountingStorageEnforce"]
    assert finding.severity is Severity.ERROR
    assert "the daemon writes no priorities" in finding.message
    assert "AccountingStorageEnforce=associations" in finding.remedy
    allowed = config(slurm={"allow_unenforced_accounts": True})
    assert found(allowed, slurm)["AccountingStorageEnforce"].severity is Severity.WARNING


# -- guarantees


HOUR = 3600


def partitions(**changes: Any) -> Cluster:
    """A cluster of which each partition has a time limit and is for its owner; all is other."""
    usual = Cluster().layout().partitions
    own = {"pa": ("physics",), "pb": ("biology", "virus")}
    return Cluster(
        layout_changes={
            "partitions": {
                name: replace(one, allow_accounts=own.get(name, ()))
                for name, one in usual.items()
                if name in own
            }
            | {"all": replace(usual["all"], **changes)}
        }
    )


def test_where_others_may_stay_longer_than_an_owners_guarantee_says_is_a_warning() -> None:
    promised = config(PHYSICS | {"guarantee": "4h"}, BIOLOGY)
    finding = found(promised, partitions(longest=24 * HOUR))["partition all"]
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "jobs of others may stay 24 h on nodes of physics, whose fairness.guarantee is 4 h: "
        "priorities alone cannot keep it"
    )
    assert "set MaxTime=240 for it in slurm.conf" in finding.remedy
    endless = found(config(fairness={"guarantee": "4h"}), partitions())["partition all"]
    assert "may stay without end on nodes of biology, physics" in endless.message


def test_where_others_end_in_time_or_are_preempted_or_may_not_run_is_none() -> None:
    promised = config(fairness={"guarantee": "4h"})
    assert set(found(promised, partitions(longest=4 * HOUR))) == {"partitions"}
    finding = found(promised, partitions(preempts=True))["partition all"]
    assert finding.severity is Severity.NOTICE
    assert finding.message.endswith("unless Slurm preempts these jobs")
    assert found(config(), partitions()) == {}
    shown = {"partition pa", "partition pb", "partition all", "partitions"}
    assert set(found(promised)) == shown


def test_partitions_that_share_some_nodes_are_named() -> None:
    promised = config(fairness={"guarantee": "4h"})
    finding = found(promised, partitions(longest=4 * HOUR))["partitions"]
    assert finding.severity is Severity.NOTICE
    assert finding.message.startswith("all, pa, pb have some nodes in common, not all: ")
    usual = Cluster().layout().partitions["all"]
    same = {name: replace(usual, name=name, longest=HOUR) for name in ("all", "short")}
    assert "partitions" not in found(promised, Cluster(layout_changes={"partitions": same}))
