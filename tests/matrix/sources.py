"""The sources that packages are built of and tests run from, apart from the checkout."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.matrix.roots import ROOT

NOT_PACKED = frozenset({"tests", ".ci", "run", ".gitignore"})


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of the checkout that git knows or would add.

    Attributes:
        files: relative paths.
        product: a checksum of what the packages hold: all but the tests and what runs them.
    """

    files: tuple[Path, ...]
    product: str

    @classmethod
    def read(cls) -> Sources:
        """Reads the checkout."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        files = tuple(sorted(Path(name) for name in listed.split("\0") if name))
        files = tuple(file for file in files if (ROOT / file).is_file())
        return cls(files, _checksum([file for file in files if file.parts[0] not in NOT_PACKED]))

    def export(self, folder: Path, *, without: Sequence[str] = ()) -> Path:
        """Copies the files below a folder.

        Args:
            folder: is made.
            without: folders at the top that are left out.
        """
        for file in self.files:
            if file.parts[0] not in without:
                copy = folder / file
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, copy)
        return folder


def _checksum(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = (ROOT / file).read_bytes()
        digest.update(f"{file}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
