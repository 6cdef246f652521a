import itertools

import pytest

from gradviz.render import style


def luminance(color):
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color", [*style.PALETTE, *style.RAMP, style.REST])
def test_text_reads_well_on_every_color(color):
    assert contrast(style.text_on(color), color) >= 4.4


@pytest.mark.parametrize("color", [*style.PALETTE, *style.RAMP])
def test_text_reads_well_on_every_tint(color):
    assert contrast(style.INK, style.tint(color)) >= 7
    assert contrast(style.FAINT_INK, style.tint(color)) >= 4.4


def test_colors_of_a_picture_differ():
    assert len(set(style.PALETTE)) == len(style.PALETTE)


def test_the_ramp_gets_darker_all_the_way():
    steps = [luminance(style.ramp(part / 20)) for part in range(21)]

    assert all(one > other for one, other in itertools.pairwise(steps))


def test_the_ramp_ends_where_it_says():
    assert style.ramp(0) == style.ramp(-1) == style.RAMP[0]
    assert style.ramp(1) == style.ramp(2) == style.RAMP[-1]


def test_cpu_has_the_same_color_in_every_picture():
    assert style.assign(["sim:0", "cpu"])["cpu"] == style.assign(["cpu"])["cpu"]


def test_devices_are_colored_by_name_whatever_their_order():
    assert style.assign(["sim:1", "sim:0"]) == style.assign(["sim:0", "sim:1"])


def test_names_beyond_the_palette_share_a_color():
    colors = style.assign(f"sim:{number:02}" for number in range(12))

    assert [colors[f"sim:{number:02}"] for number in (8, 11)] == [style.REST] * 2
