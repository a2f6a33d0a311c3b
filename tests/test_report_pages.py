"""Reports in a browser, from their files: runs, sweeps, studies and comparisons."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import Run
from tidegate._core import __version__
from tidegate.experiments import find, run, sweep, tune
from tidegate.experiments.columns import Column
from tidegate.experiments.landscape import Landscape
from tidegate.report import searches

QUICK = {"schemes": ("plain",), "rates_mbps": (10,), "base_rtts_ms": (10.0,), "duration_s": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "run"
    run("reference.dumbbell", {"flows": (1, 2), "duration_s": 2.1}, seeds=[1], quick=True, out=out)
    return out


def opened(browser: Any, file: Path, **more: Any) -> tuple[Any, list[str]]:
    """The page, and what the browser says: a script or style that the policy does not have is an error there."""
    page = browser.new_page(**more)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "request",
        lambda request: said.append(request.url) if request.url[:5] not in ("file:", "data:") else None,
    )
    page.goto(f"file://{file}")
    return page, said


def point(page: Any, chart: str) -> None:
    """Move the mouse over a chart, to its left, where its first point is."""
    over = page.locator(chart).locator(".u-over")
    box = over.bounding_box()
    over.hover(position={"x": 0.1 * box["width"], "y": 0.5 * box["height"]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "background", "colours"),
    [("light", "rgb(255, 255, 255)", "LIGHT"), ("dark", "rgb(20, 23, 27)", "DARK")],
)
def test_a_run_s_report(browser: Any, folder: Path, scheme: str, background: str, colours: str) -> None:
    page, said = opened(
        browser, folder / "report.html", color_scheme=scheme, viewport={"width": 390, "height": 800}
    )
    page.wait_for_selector(".chart canvas")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    assert page.evaluate(f"[...drawn][0].plot.series[1].stroke() === {colours}[0]")
    # Something is drawn in the series' colour.
    red, green, blue = (int(page.evaluate(f"{colours}[0]")[at : at + 2], 16) for at in (1, 3, 5))
    pixels = "[...drawn][0].plot.ctx.getImageData(0, 0, [...drawn][0].plot.ctx.canvas.width, [...drawn][0].plot.ctx.canvas.height).data"
    found = f"{{ const of = {pixels}; let n = 0; for (let i = 0; i < of.length; i += 4) n += of[i] === {red} && of[i + 1] === {green} && of[i + 2] === {blue}; return n; }}"
    assert page.evaluate(f"() => {found}") > 50
    scale = "(() => { const { min, max } = [...drawn][0].plot.scales.x; return max - min; })()"
    whole = page.evaluate(scale)
    page.locator(".chart [role=img]").first.focus()
    page.keyboard.press("+")
    assert page.evaluate(scale) == pytest.approx(whole / 2)
    page.keyboard.press("0")
    assert page.evaluate(scale) == pytest.approx(whole)
    one = page.evaluate("[...drawn][0].names.length")
    page.select_option("section.series select", index=1)
    # Charts that are over time; those of the rows stay.
    assert page.evaluate("[...drawn].find((one) => !one.over.x).names.length") == one + 1
    rows = page.locator("#charts")
    rows.locator("select").select_option("queue_delay_ms_mean (ms)")
    assert rows.locator("h3").all_inner_texts() == ["queue_delay_ms_mean (ms)"]
    assert rows.locator(".chart [role=img]").get_attribute("aria-label") == (
        "queue_delay_ms_mean in ms over case, 1 series: queue_delay_ms_mean"
    )
    column = page.locator("#rows th", has_text="case").first
    for order, first in (("ascending", "n1"), ("descending", "n2")):
        column.locator("button").click()
        assert column.get_attribute("aria-sort") == order
        assert page.locator("#rows tbody tr td").first.inner_text() == first
    page.close()
    assert said == []


@pytest.mark.slow
def test_a_sweep_and_a_study_have_reports(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    one = find("meter.rates")
    given = {**one.parameters(), **QUICK}
    over = sweep.read_over(one, ["mtu=1000,1500"])
    landscape = Landscape(tuple(over), column="goodput_mbps", where=(("scheme", "plain"),))
    sweep.run("meter.rates", given, over, landscape=landscape, seeds=[1, 2], out=tmp_path / "sweep")
    ranges = (
        tune.Range.parse("mtu=900:1500:log", one),
        tune.Range.parse("congestion_control=cubic,reno", one),
    )
    task = tune.Task("meter.rates", given, ranges, (tune.Objective(Column("goodput_mbps"), True),), (3,))
    tune.run(task, trials=2, batch=2, out=tmp_path / "tune")
    options = "--set schemes=plain --set rates_mbps=10 --set base_rtts_ms=10.0 --set duration_s=2"
    commands = {
        "sweep": f"tidegate sweep meter.rates --over mtu=1000,1500 --column goodput_mbps --where scheme=plain {options} --repeat 2",
        "tune": "tidegate tune meter.rates --range mtu=900:1500:log --range congestion_control=cubic,reno --maximise goodput_mbps "
        f"{options} --trials 2 --batch 2 --seed 3",
    }
    for kind, command in commands.items():
        page, said = opened(browser, tmp_path / kind / "report.html")
        assert page.locator("#figure img").evaluate("image => image.naturalWidth") > 100
        words, wanted = page.inner_text("#repeat pre").split(" --"), command.split(" --")
        assert sorted(words) == sorted(wanted)
        assert f"tidegate{__version__}" in "".join(page.inner_text("#parameters").split())
        table, count = ("#rows", 2 * 2) if kind == "sweep" else ("#trials", 2)
        assert page.locator(f"{table} tbody tr").count() == count
        # A line of two rates; of a study the history and what each of two parameters did.
        assert page.locator("#charts .chart canvas").count() == (1 if kind == "sweep" else 3)
        point(page, "#charts .chart >> nth=0")
        legend = page.locator("#charts .chart >> nth=0").locator(".u-legend").inner_text()
        assert ("to" in legend) == (kind == "sweep"), legend
        for link in page.locator("nav a").all():
            assert page.locator(link.get_attribute("href") or "none").count() == 1
        page.close()
        assert said == []


AXES = """
const over = (more) => ({ x: "n", points: [true], ...more });
const one = (x, more) => new Chart(document.body, "y", "", ["a"], [x, x.map(() => 1)], over(more));
const range = (chart) => { const { min, max } = chart.plot.scales.x; return [min, max]; };
const press = (chart, key) => chart.key({ key, preventDefault() {} });
const charts = [one([0, 1, 2, 3], { ticks: ["p", "q", "r", "s"] }), one([1, 10, 100], { log: true }), one([0, 5, 10], {}), one([7], {}), one([600, 900], { log: true })];
const later = () => new Promise((done) => setTimeout(done, 50));
(async () => {
  await later();
  const found = [];
  for (const chart of charts) {
    const whole = range(chart);
    press(chart, "+"); await later();
    const near = range(chart);
    press(chart, "0"); await later();
    found.push({ whole, near, again: range(chart), ticks: chart.plot.axes[0]._splits });
  }
  return found;
})()
"""


@pytest.mark.slow
def test_each_kind_of_axis_zooms_and_comes_back(browser: Any, folder: Path) -> None:
    page, said = opened(browser, folder / "report.html")
    names, log, numbers, single, narrow = page.evaluate(AXES)
    for one in (names, log, numbers, narrow):
        assert one["whole"][0] < one["near"][0] < one["near"][1] < one["whole"][1]
        assert one["again"] == pytest.approx(one["whole"])
        assert len(one["ticks"]) > 1
    assert names["whole"] == [-0.5, 3.5]
    assert numbers["near"] == pytest.approx([2.3, 7.7], abs=0.3)
    # About the middle of a logarithmic axis.
    low, high = log["near"]
    assert low * high == pytest.approx(100, rel=0.01)
    assert single["whole"] == [6, 8]
    page.close()
    assert said == []


@pytest.mark.slow
def test_a_comparison_has_a_report(browser: Any, folder: Path, tidegate: Run, tmp_path: Path) -> None:
    other = tmp_path / "other"
    run("reference.dumbbell", {"flows": (1, 2), "duration_s": 2.1}, seeds=[2], quick=True, out=other)
    out = tmp_path / "compare"
    words = ("compare", str(folder), str(other), "--quantity", "goodput_mbps")
    assert tidegate(*words, "--out", str(out)).code == 0
    page, said = opened(browser, out / "report.html")
    assert page.locator("#figure img").evaluate("image => image.naturalWidth") > 100
    assert (
        page.locator("#rows tbody tr").count()
        == len(json.loads((out / "compare.json").read_text())["rows"])
        == 2
    )
    assert page.inner_text("#repeat pre") == f"tidegate {' '.join(words)} --out {out}"
    assert page.locator("#charts .chart canvas").count() == 1
    point(page, "#charts .chart")
    # The case that is pointed at, its median, and from the least to the greatest.
    legend = page.locator("#charts .u-legend").inner_text()
    assert "n1" in legend
    assert re.search(r"[\d.]+ \[[\d.]+ to [\d.]+\]", legend), legend
    page.close()
    assert said == []


def test_hostile_names_in_studies_and_comparisons() -> None:
    evil = '</script><img src=x onerror="alert(2)">'
    study = {"experiment": evil, "objectives": [[evil, "minimize"]], "best": []}
    study |= {"trials": [{"trial": 0, "state": evil, evil: 1.0, f"of {evil}": evil}]}
    study |= {"parameters": {evil: evil}, "ranges": [evil], "where": [[evil, evil]], "seeds": [1]}
    study |= {"batch": 1, "prune": True, "warnings": [evil], "versions": {evil: evil}}
    side = {
        "name": evil,
        "experiment": evil,
        "backend": evil,
        "version": evil,
        "parameters": {evil: evil},
        "seeds": [1],
    }
    cell = {"name": evil, "median": 1.0, "least": 1.0, "most": 1.0}
    row = {"case": evil, "label": evil, "quantity": evil, "unit": evil, "sides": [cell]}
    compared = {"sides": [side], "rows": [row], "left_out": [evil], "confidence": 0.95}
    for text in (searches.of_study(study, b""), searches.of_comparison(compared, b"", evil)):
        assert "<img src=x" not in text
        # The page's own, and what its charts are drawn from.
        assert text.count("</script>") == text.count("<script") == 2
