from __future__ import annotations

from tests.architecture import ROOT
from tests.lanes import LONGEST


def test_what_is_begun_first_is_there_and_named_once() -> None:
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
