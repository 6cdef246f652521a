"""The colors of the page, beside those of the other pictures."""

import itertools
import re
from importlib import resources

import pytest

from gradviz.render import style

CSS = resources.files("gradviz.render.page").joinpath("static", "page.css").read_text()


def themes():
    """Of each theme the colors by name; dark is what it changes of light."""
    blocks = re.findall(r':root(\[data-theme="?dark"?\])?\{([^}]*--ink:[^}]*)\}', CSS)
    found = {
        "dark" if dark else "light": dict(re.findall(r"--([a-z0-9-]+):\s*(#\w+)", text))
        for dark, text in reversed(blocks)
    }
    return {name: {k: full(v) for k, v in one.items()} for name, one in found.items()}


def full(color):
    return color if len(color) > 4 else "#" + "".join(2 * one for one in color[1:])


def test_light_is_as_other_pictures_are() -> None:
    light = themes()["light"]

    for name, colors in (("palette", style.PALETTE), ("family", style.FAMILIES)):
        assert tuple(light[f"{name}-{place}"] for place in range(8)) == colors
    assert light["ink"] == style.INK
    assert light["leaf"] == style.LEAF
    assert light["rest"] == style.REST


def test_dark_has_all_that_light_has() -> None:
    assert themes()["dark"].keys() == themes()["light"].keys()


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_reads_on_the_ground(name) -> None:
    colors = themes()[name]
    for text, ground in itertools.product(
        ("ink", "faint-ink", "alarm", "accent"), ("background", "panel")
    ):
        assert contrast(colors[text], colors[ground]) >= 4.5, (text, ground)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_bars_are_seen_on_their_lane(name) -> None:
    colors = themes()[name]
    bars = [f"palette-{place}" for place in range(8)] + ["leaf", "rest", "critical"]
    for bar in bars:
        assert contrast(colors[bar], colors["panel"]) >= 2.2, bar
    # The last families are pale on white, where gray lanes take less than that away.
    for place in range(8):
        assert contrast(colors[f"family-{place}"], colors["panel"]) >= 1.5, place


@pytest.mark.parametrize("name", ["light", "dark"])
def test_families_and_leaves_stay_apart_in_grayscale(name) -> None:
    colors = themes()[name]
    names = ["leaf", *(f"family-{place}" for place in range(8))]

    ordered = sorted(lightness(colors[one]) for one in names)

    assert min(map(float.__sub__, ordered[1:], ordered)) >= 5


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(color):
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    ]
    return sum(map(float.__mul__, (0.2126, 0.7152, 0.0722), linear))


def lightness(color):
    """Of CIELAB: 0 is black, 100 white."""
    return 116 * luminance(color) ** (1 / 3) - 16
