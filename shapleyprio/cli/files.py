"""`shapleyprio files`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

import click

from shapleyprio.cli.options.json_output import json_option, write_json
from shapleyprio.common.errors import OutputError
from shapleyprio.common.shipped import ShippedFile, shipped_files


@click.command
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--copy",
    "directory",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Copy the files into this directory, with their folders.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@json_option
def command(
    names: tuple[str, ...], directory: Path | None, *, force: bool, json_file: Path | None
) -> None:
    """List or copy the files that come with shapleyprio.

    They are the unit for systemd, settings for Slurm, dashboards, alerts, an example of the
    configuration and the documentation. NAME is a file, a folder or a pattern such as
    'grafana/*'; without one, all files are meant.
    """
    if force and directory is None:
        raise click.UsageError("--force is for --copy")
    if json_file is not None and any(file.name == str(json_file) for file in shipped_files()):
        raise click.UsageError(f"{json_file} is a NAME; write it before --json")
    chosen = _chosen(names)
    if directory is not None:
        _copy(chosen, directory, force=force)
    show = write_json(json_file, [_row(file, directory) for file in chosen])
    if not show:
        return
    if directory is not None:
        for file in chosen:
            click.echo(directory / file.name)
    else:
        width = max(len(file.name) for file in chosen)
        for file in chosen:
            click.echo(f"{file.name:<{width}}  {file.purpose}")
        click.echo("\n--copy DIRECTORY copies them; --json shows where they are.")


def _chosen(names: Sequence[str]) -> list[ShippedFile]:
    files = shipped_files()
    wanted = [name.removeprefix("./").rstrip("/") for name in names]
    for name in wanted:
        if not any(_is_meant(file, name) for file in files):
            known = {file.name for file in files}
            known |= {str(parent) for name in known for parent in Path(name).parents} - {"."}
            near = get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {near[0]}?" if near else "`shapleyprio files` lists all"
            raise click.UsageError(f"{name}: shapleyprio ships no such file; {hint}")
    return [file for file in files if not wanted or any(_is_meant(file, name) for name in wanted)]


def _is_meant(file: ShippedFile, name: str) -> bool:
    return file.name == name or file.name.startswith(f"{name}/") or fnmatchcase(file.name, name)


def _copy(files: Sequence[ShippedFile], directory: Path, *, force: bool) -> None:
    """Copies all files, or none if one of them is there already."""
    taken = [target for file in files if (target := directory / file.name).exists()]
    if taken and not force:
        others = f" (and {len(taken) - 1} more)" if len(taken) > 1 else ""
        raise OutputError(f"{taken[0]}{others}: already exists; --force overwrites")
    for file in files:
        target = directory / file.name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.path, target)
        except OSError as error:
            raise OutputError(f"{target}: cannot be written ({error.strerror})") from None


def _row(file: ShippedFile, directory: Path | None) -> dict[str, str]:
    row = {"name": file.name, "path": str(file.path), "purpose": file.purpose}
    return row if directory is None else row | {"copy": str(directory / file.name)}
