"""The dashboard of a run that is being written: how it ends, which case is shown; and what its page does with what it is shown."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tidegate import assets
from tidegate.experiments import folder as folders
from tidegate.experiments import run
from tidegate.experiments.plan import Run
from tidegate.view.finished import Finished
from tidegate.view.page import Page
from tidegate.view.switching import Switching
from viewers import Shown, until


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("written") / "run"
    run("reference.dumbbell", {"flows": (1, 2), "duration_s": 2.1}, seeds=[1], quick=True, out=out)
    return out


class Written:
    """A run of the same experiment as `made` that is being written to `out`, and its dashboard."""

    def __init__(self, made: Path, out: Path) -> None:
        record = folders.read_record(made)
        self.runs = folders.runs_of(made, record)
        self.work = folders.Work(out)
        self.about = {name: record[name] for name in ("experiment", "backend", "parameters", "seeds")}
        self.work.begin(self.about)
        self.done: list[Run] = []
        self.shown, self.page = Finished(out), Shown()
        self.shown.begin(self.page)  # type: ignore[arg-type]

    def add(self, *runs: Run) -> None:
        for one in runs:
            self.work.write_tables(one)
            self.work.add(one)
            self.done.append(one)
        self.hear()

    def hear(self, **said: int) -> None:
        self.shown.hear(self.page, said)  # type: ignore[arg-type]

    def finish(self, figure: bytes | None) -> None:
        runs = sorted(self.done, key=lambda one: one.case)
        rows = [row for one in runs for row in one.rows or ()]
        self.work.finish({**self.about, "rows": rows, "claims": [], "warnings": []}, figure)

    def kill(self) -> None:
        assert self.work._lock is not None
        os.close(self.work._lock)

    @property
    def state(self) -> tuple[bool, bool, list[str]]:
        about = self.page.about
        return about["written"], about["early"], about["cases"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_a_run_that_ends_early_stays_on_what_it_had_done(
    made: Path, tmp_path: Path, how: str, whole: bool
) -> None:
    """Also where a whole run of before is in its place."""
    out = tmp_path / "run"
    if whole:
        shutil.copytree(made, out)
    now = Written(made, out)
    now.add(now.runs[1])
    assert now.state == (True, False, ["n2, seed 1"])
    if how == "killed":
        now.kill()
    else:
        now.finish(None)
    now.hear()
    assert now.state == (False, True, ["n2, seed 1"])
    now.hear(case=0)
    assert len(now.page.about["flows"]) == 2


def test_a_run_that_ends_before_anything_is_done_is_not_taken_for_the_one_of_before(
    made: Path, tmp_path: Path
) -> None:
    shutil.copytree(made, tmp_path / "run")
    now = Written(made, tmp_path / "run")
    now.work.discard()
    now.hear()
    assert now.state == (False, True, [])


def test_a_run_that_replaces_another_is_shown_as_it_is(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(made, out)
    now = Written(made, out)
    now.add(now.runs[0])
    now.finish(b"")
    now.hear()
    assert now.state == (False, False, ["n1, seed 1"])


def test_an_interrupted_run_says_that_it_is_one(made: Path, tmp_path: Path) -> None:
    now = Written(made, tmp_path / "run")
    now.add(now.runs[0])
    now.finish(None)
    page = Shown()
    Finished(tmp_path / "run").begin(page)  # type: ignore[arg-type]
    assert (page.about["written"], page.about["early"]) == (False, True)


def test_the_case_that_is_shown_stays_when_cases_get_another_order(made: Path, tmp_path: Path) -> None:
    now = Written(made, tmp_path / "run")
    now.add(now.runs[1], now.runs[0])
    assert (now.page.about["cases"], now.page.about["shown"]) == (["n2, seed 1", "n1, seed 1"], 0)
    now.finish(b"")
    now.hear()
    about = now.page.about
    assert (about["cases"][about["shown"]], len(about["flows"])) == ("n2, seed 1", 2)


def test_a_row_that_is_no_number_does_not_begin_the_page_anew(made: Path, tmp_path: Path) -> None:
    now = Written(made, tmp_path / "run")
    now.add(replace(now.runs[0], rows=[{**row, "x": math.nan} for row in now.runs[0].rows or ()]))
    shown = len(now.page.shown)
    for _ in range(3):
        now.hear()
    assert len(now.page.shown) == shown


def test_a_switch_with_many_queues_is_looked_at_less_often() -> None:
    looks: list[int] = []

    def read(port: int, queue: int) -> Any:
        looks.append(queue)
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return SimpleNamespace(waiting_packets=0, waiting_bytes=0, dropped=0)

    counted = dict.fromkeys(("received", "sent", "received_bytes", "sent_bytes"), 0)
    switch: Any = SimpleNamespace(
        ports=[SimpleNamespace(number=1, interface="e0", rate=None)],
        api=SimpleNamespace(port_read=lambda port: SimpleNamespace(queues=[0]), queue_read=read),
        statistics=lambda: {"ports": [counted]},
        notes={},
    )
    shown, page = Switching(switch, "s"), Shown()
    for _ in range(3):
        shown.update(page)  # type: ignore[arg-type]
    assert len(looks) == len(page.shown) == 1


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_port_without_a_rate_has_no_share_of_it() -> None:
    text = assets.text("view.js")
    function = next(line for line in text.splitlines() if line.startswith("function use("))
    script = f"{function} console.log(JSON.stringify([use(5, null), use(5, 10), use(5, 0)]))"
    said = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == [0, 0.5, 0]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_there_is_room_for_the_numbers_beside_an_axis() -> None:
    text = assets.text("charts.js")
    functions = [
        text[text.index(f"function {name}(") :].partition("\n}\n")[0] + "}" for name in ("shown", "ticked")
    ]
    values = [0, 0.25, 1500, 999_000, 1e6, 12_500_000, -2e9, 1e-4, 0.00015]
    script = f"{';'.join(functions)}; console.log(JSON.stringify({json.dumps(values)}.map(ticked)))"
    said = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == ["0", "0.25", "1500", "999000", "1e6", "1.25e7", "-2e9", "1e-4", "1.5e-4"]


def case(page: Page, cases: list[str], shown: int, value: float) -> None:
    """Show a case with one chart, whose line has this value."""
    chart = {"title": "Goodput", "unit": "Mbit/s", "names": ["flow"], "left_out": 0}
    about = {"title": "x", "kind": "finished", "run": 1, "written": True, "early": False, "charts": [chart]}
    page.begin({**about, "cases": cases, "shown": shown, "flows": ["flow"], "queues": []})
    page.show({}, {"flow goodput_mbps": [value], "chart 0 x": [0.0, 1.0], "chart 0 0": [value, value]})


@pytest.mark.slow
@pytest.mark.parametrize(("value", "ends"), [(0.0, [0, 1]), (5.0, [0, 10])])
def test_the_axis_of_values_that_are_all_the_same(browser: Any, value: float, ends: list[float]) -> None:
    with Page() as page:
        case(page, ["a"], 0, value)
        made = browser.new_page()
        made.goto(page.url)
        until(lambda: page.heard(0.05) is not None and made.locator(".chart canvas").count())
        until(lambda: made.evaluate("[charts[0].plot.scales.y.min, charts[0].plot.scales.y.max]") == ends)


@pytest.mark.slow
def test_charts_are_those_of_the_case_that_is_named(browser: Any) -> None:
    with Page() as page:
        case(page, ["a"], 0, 1.0)
        made = browser.new_page()
        made.goto(page.url)
        until(lambda: page.heard(0.05) is not None and made.locator(".chart canvas").count())
        # It gets another number: the charts stay, with what somebody has zoomed in them.
        made.evaluate("charts[0].kept = true")
        case(page, ["b", "a"], 1, 1.0)
        until(lambda: page.heard(0.05) is not None and made.locator("#case option").count() == 2)
        assert made.evaluate("charts[0].kept") is True
        case(page, ["b", "a"], 0, 2.0)
        until(lambda: page.heard(0.05) is not None and made.evaluate("charts[0]?.data[1][0]") == 2)
        case(page, ["a", "b"], 0, 1.0)
        until(lambda: page.heard(0.05) is not None and made.evaluate("charts[0]?.data[1][0]") == 1)


WATCH = """
    window.announced = 0;
    new MutationObserver(() => announced++).observe(one("state"), { childList: true, characterData: true, subtree: true });
"""


@pytest.mark.slow
def test_a_screen_reader_hears_changes_of_the_state_alone(browser: Any) -> None:
    about = {
        "title": "x",
        "kind": "running",
        "until_s": 9,
        "flows": ["f"],
        "queues": [],
        "nodes": [],
        "links": [],
    }
    with Page() as page:
        page.begin(about)
        made = browser.new_page()
        made.goto(page.url)

        def show(t: float, **more: Any) -> None:
            header = {"t": t, "paused": False, "ended": False, "notes": {}, "trace": None, **more}
            page.show(header, {"flow rate_mbps": [t]})
            until(lambda: page.heard(0.05) is not None and made.inner_text("#time") == f"at {t:g} s of 9 s")

        show(1)
        made.evaluate(WATCH)
        assert made.get_attribute("#state", "role") == "status"
        for t in (2, 3, 4):
            show(t)
        assert (made.inner_text("#state"), made.evaluate("announced")) == ("running", 0)
        show(5, paused=True)
        assert (made.inner_text("#status"), made.evaluate("announced")) == ("paused at 5 s of 9 s", 1)


WIDTHS = """
    window.widths = [];
    const stroke = CanvasRenderingContext2D.prototype.stroke;
    CanvasRenderingContext2D.prototype.stroke = function (...given) { if (this.canvas.id === "topology") widths.push(this.lineWidth); return stroke.apply(this, given); };
"""


@pytest.mark.slow
def test_a_port_without_a_rate_is_not_drawn_as_the_busiest(browser: Any) -> None:
    ports = ["e0: received", "e0: sent", "e1: received", "e1: sent"]
    about = {
        "title": "x",
        "kind": "switch",
        "nodes": [["s", "switch"], ["e0", "host"], ["e1", "host"]],
        "links": [[1, 0, *ports[:2]], [2, 0, *ports[2:]]],
        "rates_mbps": [None, None, 10, 10],
        "ports": ports,
        "queues": [],
    }
    with Page() as page:
        page.begin(about)
        page.show(
            {"t": 1, "notes": {}}, {"port rate_mbps": np.full(4, 5.0), "port packets_per_s": np.ones(4)}
        )
        made = browser.new_page()
        made.add_init_script(WIDTHS)
        made.goto(page.url)
        # The links, then the nodes.
        until(lambda: page.heard(0.05) is not None and made.evaluate("widths.length") >= 5)
        assert made.evaluate("widths.slice(-5, -3)") == [1, 3]


@pytest.mark.slow
def test_keys_zoom_in_a_chart_that_has_fewer_values_than_before(browser: Any) -> None:
    with Page() as page:
        case(page, ["a"], 0, 1.0)
        made = browser.new_page()
        made.goto(page.url)
        until(lambda: page.heard(0.05) is not None and made.locator(".chart canvas").count())
        made.evaluate("charts[0].at = 1000")
        made.locator(".chart [role=img]").focus()
        made.keyboard.press("+")
        until(lambda: made.evaluate("charts[0].plot.scales.x.min") == 0.5)
        assert made.evaluate("charts[0].plot.scales.x.max") == 1
