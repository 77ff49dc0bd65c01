"""Files that appear whole or not at all, and the results that long work keeps in them."""

from __future__ import annotations

from shapleyprio.output.kept import KeptResults, read_json, write_json
from shapleyprio.output.whole import whole_binary_file, whole_file

__all__ = ["KeptResults", "read_json", "whole_binary_file", "whole_file", "write_json"]
