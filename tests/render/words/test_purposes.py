import re
from pathlib import Path

import gradviz.render.page
from gradviz.analysis.memory.memory_use import PURPOSES
from gradviz.render.words.purposes import CALLED, COLORS, STACKED

STYLE = Path(gradviz.render.page.__file__).parent / "source" / "shell.css"


def test_the_page_has_the_colors_that_pictures_have():
    light = STYLE.read_text("utf-8").partition("data-theme")[0]
    colors = dict(re.findall(r"--purpose-(\d): (#\w+)", light))

    for place, purpose in enumerate(STACKED):
        if purpose in COLORS:
            assert colors[str(place)] == COLORS[purpose]


def test_each_purpose_has_a_name_of_its_own():
    assert {*CALLED} == {*PURPOSES}
    assert len({*CALLED.values()}) == len(PURPOSES)
