"""The folders that keep compiled functions between processes, and the search in them.

Two folders are looked into: one that all users of the machine share, which root fills
(`shapleyprio compile`), and the user's own. What is in neither is compiled, and kept in the first
one that can be written. If there is none, it is compiled by every process anew.

numba's own cache will not do: it wants to write wherever it reads, and it takes machine code for
fresh as long as one file is unchanged, whatever became of the functions that it calls.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import compiler, serialize

import shapleyprio
from shapleyprio.errors import ReplayError

SHARED = Path("/var/cache/shapleyprio")

SHARED_VARIABLE = "SHAPLEYPRIO_CACHE_DIRECTORY"
"""Environment variable that names another shared folder."""

SOURCES = ("replay", "papers/cloudshare")
"""Folders of the package whose functions are compiled: a change there makes all code stale."""

RELEASE_PREFIX = "compiled-"

# numba has types for a part of itself only
_REBUILD: Any = compiler.CompileResult._rebuild  # noqa: SLF001
_DUMPS: Any = serialize.dumps

DIGEST_BYTES = hashlib.sha256().digest_size


class KernelCache:
    """The compiled forms of one function, as numba's dispatcher asks for them.

    Args:
        function: which is compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = f"{function.__module__.removeprefix('shapleyprio.')}.{function.__qualname__}"

    @property
    def cache_path(self) -> str:
        """Where to look first."""
        return str(shared_folder())

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Returns the function compiled for these types of arguments; None if it is not kept."""
        target.refresh()
        key = self._key(signature, target.codegen())
        for folder in _folders():
            data = _read(folder / release() / self._file_name(key), key)
            if data is not None:
                return _REBUILD(target, *data)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keeps what was compiled, wherever that can be done."""
        if compiled.library.has_dynamic_globals or any(
            not lifted.can_cache for lifted in compiled.lifted
        ):
            return
        key = self._key(signature, compiled.codegen)
        payload = _DUMPS((key, compiled._reduce()))  # noqa: SLF001
        for folder in _folders():
            try:
                _write(folder / release() / self._file_name(key), payload)
            except OSError:
                if folder == _filled:
                    raise
            else:
                return

    def flush(self) -> None:
        """Does nothing: what is kept is never wrong."""

    def _key(self, signature: Any, codegen: Any) -> tuple[str, ...]:
        """Returns what the machine code depends on besides the folder's name: types, CPU, code."""
        code = hashlib.sha256(self._function.__code__.co_code).hexdigest()
        return (self._name, repr(signature), *map(str, codegen.magic_tuple()), code)

    def _file_name(self, key: tuple[str, ...]) -> str:
        return f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}"


def shared_folder() -> Path:
    """Returns the folder that all users of this machine read."""
    return Path(os.environ.get(SHARED_VARIABLE) or SHARED).absolute()


def own_folder() -> Path | None:
    """Returns the folder that this user alone reads and writes; None for a user without a home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if named.startswith("/"):
        return Path(named, "shapleyprio")
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() wants a home to exist
    try:
        there = home.is_absolute() and home.is_dir()
    except OSError:  # it lies where this user may not look
        there = False
    return home / ".cache" / "shapleyprio" if there else None


@cache
def release() -> str:
    """Returns the folder's name for the code of these sources, as these versions compile them."""
    package = Path(shapleyprio.__file__).parent
    digest = hashlib.sha256()
    for version in (sys.version, numba.__version__, llvmlite.__version__, np.__version__):
        digest.update(f"{version}\n".encode())
    for folder in SOURCES:
        for file in sorted((package / folder).rglob("*.py")):
            digest.update(f"{file.relative_to(package)}\n".encode())
            digest.update(file.read_bytes())
    return f"{RELEASE_PREFIX}{digest.hexdigest()[:24]}"


@contextmanager
def filling(folder: Path) -> Iterator[None]:
    """Reads and writes this folder alone meanwhile, and removes what other releases left there.

    Raises:
        ReplayError: it cannot be written, or others than root and this user could put code there.
    """
    global _filled  # noqa: PLW0603  # numba asks without telling who wants to know
    _filled = folder.absolute()
    try:
        if not _is_trusted(_filled):
            raise ReplayError(
                f"{folder}: users would execute what is there, so nobody but you and root may own "
                "it or write to it; correct its owner and mode, or name another directory"
            )
        _make(_filled / release())
        tempfile.TemporaryFile(dir=_filled / release()).close()
        yield
        for old in _filled.glob(f"{RELEASE_PREFIX}*"):
            if old.name != release() and not old.is_symlink():
                shutil.rmtree(old)
    except OSError as error:
        raise ReplayError(
            f"{folder}: cannot be written ({error.strerror}); "
            "become root, or name another directory"
        ) from None
    finally:
        _filled = None


_filled: Path | None = None


def is_kept() -> bool:
    """Returns whether functions are kept that this user finds compiled, or can be."""
    for folder in _folders():
        if (folder / release()).is_dir():
            return True
        nearest = next(place for place in (folder, *folder.parents) if place.is_dir())
        if os.access(nearest, os.W_OK | os.X_OK):
            return True
    return False


def _folders() -> Iterator[Path]:
    """Yields the folders in which to look and to write, the first one first."""
    if _filled is not None:
        yield _filled
        return
    for folder in (shared_folder(), own_folder()):
        if folder is not None and _is_trusted(folder):
            yield folder


def _is_trusted(folder: Path) -> bool:
    """Returns whether only root and this user may put code there, which we would execute."""
    for place in (folder, folder / release()):
        try:
            found = place.stat()
        except FileNotFoundError:
            continue
        except OSError:
            return False
        if found.st_uid not in {0, os.geteuid()} or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
    return True


def _read(file: Path, key: tuple[str, ...]) -> Any:
    """Returns what is kept for the key; None if there is nothing or it is damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, payload = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if hashlib.sha256(payload).digest() != digest:
        return None
    kept_key, data = pickle.loads(payload)  # noqa: S301  # only from those whom _is_trusted names
    return data if kept_key == key else None


def _make(release_folder: Path) -> None:
    """Makes the folder and the one it is in, for everybody to read."""
    for folder in (release_folder.parent, release_folder):
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)


def _write(file: Path, payload: bytes) -> None:
    """Writes the file at once as a whole, for everybody to read."""
    _make(file.parent)
    handle, name = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as written:
            os.fchmod(handle, 0o644)
            written.write(hashlib.sha256(payload).digest() + payload)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
