"""Names that look like others, or have something in them that nobody sees."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shapleyprio.common.wording import visible
from tests.daemon.consortium import PHYSICS, config

LOOK_ALIKES = {
    "ph\u0443sics": "ph\\u0443sics",  # Cyrillic
    "physi\u03f2s": "physi\\u03f2s",  # Greek
    "ph\uff59sics": "ph\\uff59sics",  # another width
    "\U0001d429hysics": "\\U0001d429hysics",  # another style
    "phy\u115fsics": "phy\\u115fsics",  # a letter without a form
    "phy\ufe0fsics": "phy\\ufe0fsics",  # chooses a form
    "phy\u200bsics": "phy\\u200bsics",  # a blank without width
    "\u202escisyhp": "\\u202escisyhp",  # from right to left
}
"""Names that look like physics -> how they are shown."""


@pytest.mark.parametrize(("name", "shown"), LOOK_ALIKES.items())
def test_pass_for_another_by_letters_that_look_alike(name: str, shown: str) -> None:
    assert visible(f"account {name}, of x") == f"account {shown}, of x"
    with pytest.raises(ValidationError) as refused:
        config({**PHYSICS, "name": name})
    assert "control characters" in str(refused.value) or shown in str(refused.value)


def test_have_an_honest_name_written_out() -> None:
    for name in ("физика", "Φυσική", "Müller-Łódź", "物理lab", "φ̃ − ψ", "Zoë's 3 µs"):
        assert visible(name) == name
        assert config({**PHYSICS, "name": name}).organizations[0].name == name
