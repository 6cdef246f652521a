import itertools
import re
import xml.etree.ElementTree as ET

from gradviz.render import style
from gradviz.render.charts.bars import Scale
from gradviz.render.charts.time_chart import Drawn, LegendKey, axis, chart


def texts(svg: bytes) -> list[str]:
    return [one for one in ET.fromstring(svg).itertext() if one.strip()]


def test_the_axis_has_round_times_inside_of_what_is_shown() -> None:
    scale = Scale(100, 500 / 4_900_000, 1_300_000, 6_200_000)

    shown = "".join(axis(scale, 0, 50))

    assert re.findall(r">([^<]+)<", shown) == ["2 ms", "3 ms", "4 ms", "5 ms", "6 ms"]
    places = [float(x) for x in re.findall(r'd="M([0-9.]+) ', shown)]
    assert all(100 <= x <= 600 for x in places)


def test_a_long_title_ends_in_an_ellipsis_and_a_legend_takes_another_line() -> None:
    keys = [
        LegendKey(f"a thing of the legend {nr}", {"fill": "#000000"}) for nr in range(9)
    ]

    svg = chart("t" * 300, ["w" * 300], ["lost"], keys, [Drawn([], 10)], 400)

    shown = texts(svg)
    assert shown[0] == "t" * 300  # what a screen reader reads
    assert sum(one.endswith("…") for one in shown) == 2
    heights = {one.get("y") for one in ET.fromstring(svg) if one.get("width") == "13"}
    assert len(heights) > 1
    assert "lost" in shown


def lightness(color: str) -> float:
    """L* of a color, as a printer without colors has it."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    ]
    luminance = sum(
        a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )
    return 116 * luminance ** (1 / 3) - 16


def test_colors_of_a_picture_are_told_apart_without_colors() -> None:
    from gradviz.render.charts.memory_svg import COLORS
    from gradviz.render.charts.queues_svg import HANDED_OVER, OWN

    for colors in (COLORS.values(), (OWN, HANDED_OVER, style.BACKGROUND)):
        shades = sorted(map(lightness, colors))
        steps = [b - a for a, b in itertools.pairwise(shades)]
        assert min(steps) > 14
