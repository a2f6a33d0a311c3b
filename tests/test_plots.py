"""Colours of figures: one for each scheme, and apart for those who do not see all colours."""

from __future__ import annotations

import io
import itertools
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tidegate import assets
from tidegate.plots import COLOURS, CYCLE, by_seed, colour, log_scale, whiskers

# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)


def linear(name: str) -> np.ndarray:
    """Linear RGB (IEC 61966-2-1)."""
    rgb = np.array(to_rgb(name))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(name: str, blindness: str) -> np.ndarray:
    """CIELAB of a colour as it is seen."""
    seen = np.clip(np.array(BLINDNESS[blindness]) @ linear(name), 0, 1)
    x, y, z = np.cbrt(np.maximum(TO_XYZ @ seen / WHITE, 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_can_be_told_apart(blindness: str) -> None:
    seen = {name: lab(name, blindness) for name in CYCLE}
    for one, other in itertools.combinations(CYCLE[:8], 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 15, (one, other)
    controls = ("cubic", "reno", "bbr", "bbr3", "htcp", "dctcp", "prague")
    for one, other in itertools.combinations(controls, 2):
        apart = np.linalg.norm(lab(COLOURS[one], blindness) - lab(COLOURS[other], blindness))
        assert apart > 15, (one, other, apart)


def web_colours(name: str) -> list[str]:
    (line,) = re.findall(rf"const {name} = \[(.*)\];", assets.text("charts.js"))
    return re.findall(r'"(#[0-9a-f]{6})"', line)


def variables(dark: bool) -> dict[str, str]:
    light, rest = assets.text("page.css").split("@media (prefers-color-scheme: dark)")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", rest if dark else light))


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    luminances = sorted(float(TO_XYZ[1] @ linear(name)) for name in (one, other))
    return (luminances[1] + 0.05) / (luminances[0] + 0.05)


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize("name", ["LIGHT", "DARK"])
def test_colours_of_charts_in_pages_can_be_told_apart(name: str, blindness: str) -> None:
    colours = web_colours(name)
    # Dashes tell those apart that come again.
    assert len(colours) == 8
    for one, other in itertools.combinations(colours, 2):
        assert np.linalg.norm(lab(one, blindness) - lab(other, blindness)) > 15, (one, other)


@pytest.mark.parametrize("dark", [False, True])
def test_pages_have_enough_contrast(dark: bool) -> None:
    """WCAG 2.2: 4.5 for text (1.4.3), 3 for what a chart draws (1.4.11)."""
    of = variables(dark)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for text, backs in {
        "text": ("back", "panel", "bad-back"),
        "soft": ("back", "panel"),
        "accent": ("back", "panel"),
        "good": ("good-back",),
        "bad": ("bad-back",),
    }.items():
        for back in backs:
            assert contrast(of[text], of[back]) >= 4.5, (text, back)
    for drawn in web_colours("DARK" if dark else "LIGHT"):
        assert contrast(drawn, of["panel"]) >= 3, drawn


def test_a_scheme_has_one_colour_whatever_stands_behind_its_name() -> None:
    assert colour("cubic+ECN") == colour("cubic without ECN") == colour("cubic") == CYCLE[0]
    assert colour("hash-4") == colour("hash")
    assert colour("timely-max") == colour("max")
    assert colour("timely-rtt") != colour("timely-max")
    assert colour("hpcc_free") != colour("hpcc")
    assert colour("something new") == colour("something new")
    assert colour("something new") in CYCLE


def test_figures_use_the_cycle() -> None:
    assert tuple(entry["color"] for entry in mpl.rcParams["axes.prop_cycle"]) == CYCLE
    (line,) = Figure().subplots().plot([1], [2])
    assert line.get_color() == CYCLE[0]


def test_several_seeds_have_a_median_and_a_range() -> None:
    panel = Figure().subplots()
    by_seed(panel, {2.0: [1, 5, 3], 1.0: [4, 4, 4]}, label="x", colour="C0")
    assert panel.lines[0].get_xydata().tolist() == [[1, 4], [2, 3]]
    assert {tuple(point) for point in panel.collections[0].get_paths()[0].vertices.tolist()} >= {
        (2, 1),
        (2, 5),
        (1, 4),
    }
    one = Figure().subplots()
    by_seed(one, {1.0: [4], 2.0: [5]}, label="x", colour="C0")
    assert not one.collections
    by_seed(one, {}, label="y", colour="C1")
    assert len(one.lines) == 1


def test_seeds_that_differ_have_whiskers() -> None:
    panel = Figure().subplots()
    rows = [
        {"at": at, "of": of} for at, of in (("1", 2), ("1", 4), ("1", 3), ("5", 7), ("5", 7), ("9", None))
    ]
    whiskers(panel, rows, "of", lambda row: str(row["at"]), colour="C0", scale=10, offset=1)
    [line] = panel.collections
    assert [point.tolist() for point in line.get_segments()] == [[[1, 21], [1, 41]]]

    named = Figure().subplots()
    both = [{"at": "a", "of": of} for of in (1, 2)]
    places, scale = {"a": 3.5}, {"a": -2.0}
    whiskers(named, both, "of", lambda row: str(row["at"]), colour="C0", places=places, scale=scale)
    [line] = named.collections
    assert [sorted(point.tolist()) for point in line.get_segments()] == [[[3.5, -4], [3.5, -2]]]


@pytest.mark.parametrize(
    ("values", "scale"), [([np.nan, np.nan], "linear"), ([0.0, np.nan], "linear"), ([np.nan, 3.0], "log")]
)
def test_an_axis_without_a_value_above_0_is_not_logarithmic(values: list[float], scale: str) -> None:
    """With limits of the other axis, matplotlib refuses to draw it."""
    figure = Figure()
    panel = figure.subplots()
    panel.bar([0, 1], values)
    panel.vlines([0, 1], values, values)
    panel.set_xlim(-0.5, 1.5)
    log_scale(panel)
    assert panel.get_yscale() == scale
    figure.savefig(io.BytesIO())
