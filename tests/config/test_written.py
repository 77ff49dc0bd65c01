"""What a configuration file says is kept without secrets, and two of them are compared by key."""

from __future__ import annotations

from shapleyprio.config import Config
from shapleyprio.config.reference import differences, written

FILE = {
    "fairness": {"horizon": "unlimited", "since": "2026-01-31T00:00:00Z"},
    "push": {"influence": "strict"},
    "service": {"poll_interval": "90s", "socket": "off"},
    "store": {"url": "postgresql+psycopg://fair:Xy1@db/fair?sslmode=require"},
    "metrics": {"address": "0.0.0.0:9817"},
    "organization": [
        {"name": "physics", "accounts": ["phys"], "nodes": ["n[1-4]"]},
        {"name": "biology", "sub_accounts": False},
    ],
    "pool": [{"name": "all", "clusters": ["c1", "c2"]}],
}


def test_each_key_that_is_set_has_its_value_in_words() -> None:
    said = written(Config.model_validate(FILE))
    assert "Xy1" not in str(said)
    assert {key: said[key] for key in said if key != "fairness.since"} == {
        "fairness.horizon": "unlimited",
        "push.influence": "strict",
        "service.poll_interval": "90s",
        "service.socket": "off",
        "store.url": "postgresql+psycopg://fair:***@db/fair?sslmode=require",
        "metrics.address": "0.0.0.0:9817",
        "organization": "physics, biology",
        "organization.physics.accounts": '["phys"]',
        "organization.physics.nodes": '["n[1-4]"]',
        "organization.biology.sub_accounts": "false",
        "pool": "all",
        "pool.all.clusters": '["c1", "c2"]',
    }
    assert said["fairness.since"].startswith("2026-01-3")


def test_the_order_of_organizations_is_a_difference() -> None:
    turned = {**FILE, "organization": FILE["organization"][::-1]}  # type: ignore[index]
    found = differences(*(written(Config.model_validate(one)) for one in (FILE, turned)))
    assert found == [("organization", "physics, biology", "biology, physics")]
