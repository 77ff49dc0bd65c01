"""Runs of commands that need neither a configuration nor a cluster."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from shapleyprio.cli import main


class OfflineCommand:
    """A command, with the words that always follow it."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, [*self._words, *arguments])

    def succeeds(self, *arguments: str) -> Result:
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result

    def answer(self, *arguments: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.succeeds(*arguments, "--json", "-").stdout)
        return answer

    def fails(self, message: str, *arguments: str) -> None:
        """In one line, before anything is computed."""
        result = self.run(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert message in " ".join(result.stderr.split())
