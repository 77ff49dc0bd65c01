"""The recipes of CONTRIBUTING.md, followed in a copy of the checkout, add what works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
LEFT_OUT = {".git", ".venv", "build", "dist", "__pycache__"}
RECIPE = re.compile(r"`(shapleyprio/[\w/]+\.py)`:\n\n```python\n(.*?)```", re.DOTALL)
REGISTRY = "shapleyprio/fairness/rules.py"


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the files that the recipes show, and the rule registered."""
    copy = tmp_path_factory.mktemp("recipes") / "shapleyprio"
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        there = copy / Path(folder).relative_to(ROOT)
        there.mkdir()
        for file in files:
            (there / file).symlink_to(Path(folder) / file)
    recipes = dict(RECIPE.findall(CONTRIBUTING))
    assert len(recipes) == 2
    for file, code in recipes.items():
        (copy / file).write_text(code)
    (rule,) = (file for file in recipes if file.startswith("shapleyprio/fairness/"))
    (name,) = re.findall(r"^class (\w+)", recipes[rule], re.MULTILINE)
    registry = copy / REGISTRY
    text = registry.read_text()
    registry.unlink()
    imported = f"from {rule.removesuffix('.py').replace('/', '.')} import {name}\n\nDEFAULT_RULE"
    text = text.replace("\nDEFAULT_RULE", imported, 1)
    registry.write_text(re.sub(r"(_RULES: .* = \(.*)\)", rf"\1, {name}())", text))
    return copy


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a checkout; returns what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_tests(folder: Path, *arguments: str) -> str:
    return run(folder, "-m", "pytest", "-p", "no:cacheprovider", *arguments)


def test_the_code_is_in_the_projects_style(followed: Path) -> None:
    files = [file for file, _ in RECIPE.findall(CONTRIBUTING)]
    for check in (["check"], ["format", "--check"]):
        run(followed, "-m", "ruff", *check, "--no-cache", *files)


def test_the_reference_of_the_configuration_describes_both(followed: Path) -> None:
    reference = run(followed, "-m", "shapleyprio.config")
    assert "fewest_running ranks by processors at work, the fewest first" in reference
    assert "steep_nice is the nice of the pending jobs, less twice the points" in reference
    assert '"nice", "qos" or "steep_nice"' in reference


def test_the_help_of_the_replay_names_the_rule(followed: Path) -> None:
    here = "from shapleyprio.cli import main; main()"  # as a module it would not look here for root
    shown = run(followed, "-c", here, "replay", "--help")
    assert "rule:fewest_running" in shown


def test_they_work_from_check_to_rollback_and_in_a_replay(followed: Path) -> None:
    shown = run_tests(followed, "tests/recipes/journeys.py")
    assert "passed" in shown
    assert "skipped" not in shown


def test_the_contracts_of_rules_and_channels_hold_for_them(followed: Path) -> None:
    shown = run_tests(followed, "tests/fairness/test_rule.py", "-k", "fewest_running")
    assert "3 passed" in shown
    contract = ("tests/slurm/test_contract.py", "-m", "not real_slurm")
    assert "passed" in run_tests(followed, *contract)


@pytest.mark.real_slurm
def test_the_contract_of_channels_holds_on_a_real_slurm(followed: Path) -> None:
    contract = ("tests/slurm/test_contract.py", "-m", "real_slurm", "-k", "writ or value or nice")
    assert "passed" in run_tests(followed, *contract)
