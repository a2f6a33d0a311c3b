"""Notebooks: networks and results that show themselves, bars, and the examples, executed again."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate import experiments
from tidegate.compare import Side, compare
from tidegate.experiments.answer import Answer
from tidegate.network import Network
from tidegate.network.drawing import layout, svg
from tidegate.progress import NotebookBar
from tidegate.topologies import dumbbell, leaf_spine

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))
SVG = "{http://www.w3.org/2000/svg}"


def test_what_an_experiment_gives_shows_itself_and_is_a_dict(tmp_path: Path) -> None:
    given = {"flows": (1,), "duration_s": 2.1}
    answer = experiments.run("reference.dumbbell", given, seeds=[1], quick=True, out=tmp_path / "run")
    plain = dict(answer)
    assert answer == plain
    assert json.dumps(answer) == json.dumps(plain)
    shown = answer._repr_html_()  # type: ignore[attr-defined]
    for name in ("goodput_mbps", answer["claims"][0]["statement"]):
        assert escape(name) in shown
    figure = base64.b64encode((tmp_path / "run" / "figure.png").read_bytes()).decode()
    assert f"data:image/png;base64,{figure}" in shown
    study = Answer(trials=[{"trial": 0, "<b>": 1.23456}], experiment="<i>", out=str(tmp_path / "none"))
    assert "<td>1.235</td>" in study._repr_html_()
    assert not {"<b>", "<i>", "<img"} & set(re.findall(r"<\w+>?", study._repr_html_()))


def test_a_comparison_shows_its_table_and_figure_and_is_a_dict() -> None:
    def side(name: str, shift: float, flows: int) -> Side:
        rows = [{"case": "a <b>", "seed": s, "rate_mbps": s * 10 + shift} for s in range(6)]
        return Side(name, "mine.x", "sim", {"flows": flows}, rows)

    answer = compare([side("<i>", 0.0, 1), side("two", 1.5, 2)])
    assert json.loads(json.dumps(answer)) == dict(answer)
    shown = answer._repr_html_()
    assert (
        "<td>rate_mbps (Mbit/s)</td><td>25 [0 to 50]</td><td>26.5 [1.5 to 51.5]; +1.5 (+1.5 to +1.5)*</td>"
        in shown
    )
    assert escape("differs: flows (<i>: 1, two: 2)") in shown
    assert "needs six seeds" not in shown
    assert "data:image/png;base64,iVBOR" in shown
    assert not {"<b>", "<i>"} & set(re.findall(r"<\w+>?", shown))
    assert len(answer.figure().axes) == 2
    (first, second) = answer.table().to_dicts()
    assert (first["side"], first["median"], first["difference"]) == ("<i>", 25, None)
    expected = {
        "case": "a <b>",
        "label": "",
        "quantity": "rate_mbps",
        "unit": "Mbit/s",
        "side": "two",
        "median": 26.5,
    }
    expected |= {
        "least": 1.5,
        "most": 51.5,
        "seeds": 6,
        "paired": 6,
        "difference": 1.5,
        "low": 1.5,
        "high": 1.5,
    }
    assert second == {**expected, "differs": True}


def test_a_comparison_of_few_seeds_says_what_an_interval_needs() -> None:
    sides = [Side(name, "mine.x", "sim", {}, [{"case": "a", "seed": 1, "rate_mbps": 1.0}]) for name in "ab"]
    assert "an interval needs six seeds or more that both have" in compare(sides)._repr_html_()
    empty = compare(
        [Side(name, "mine.x", "sim", {}, [{"case": "a", "seed": 1, "rate_mbps": None}]) for name in "ab"]
    )
    assert empty._repr_html_() == "<p>a comparison without rows</p>"
    assert empty.table().height == 0


def test_a_dumbbell_is_drawn_from_left_to_right() -> None:
    net = Network()
    dumbbell(net, 3, bottleneck={"rate": "100 Mbit/s"})
    places = {net.nodes[number].name: place for number, place in layout(net.nodes, net.links).items()}
    assert len(places) == 8
    columns = {name: place[0] for name, place in places.items()}
    assert (
        columns["a0"] == columns["a2"] < columns["left"] < columns["right"] < columns["b0"] == columns["b2"]
    )
    assert len(set(places.values())) == 8
    drawn = ET.fromstring(svg(net.nodes, net.links))
    assert len(list(drawn.iter(f"{SVG}line"))) == 7
    names = {text.text for text in drawn.iter(f"{SVG}text")}
    assert names >= {"a0", "left", "right", "100 Mbit/s"}
    assert svg(net.nodes, net.links) in net._repr_html_()


def test_any_network_is_drawn_or_left_out() -> None:
    assert svg([], []) == ""
    for hosts in (1, 5):
        net = Network()
        leaf_spine(net, 3, 2, hosts)
        places = layout(net.nodes, net.links)
        assert len(set(places.values())) == len(net.nodes)
        ET.fromstring(svg(net.nodes, net.links))
    # Hosts alone, one switch, parts that nothing joins, and names that are markup.
    net = Network()
    a, b = net.host("<a>"), net.host("b & c")
    net.link(a, b, rate="1 Gbit/s", delay="1 ms")
    net.host("alone")
    hub = net.router("hub")
    for number in range(4):
        net.link(net.host(f"h{number}"), hub, rate="1 Gbit/s", delay="1 ms")
    assert len(set(layout(net.nodes, net.links).values())) == len(net.nodes)
    texts = [text.text for text in ET.fromstring(svg(net.nodes, net.links)).iter(f"{SVG}text")]
    assert {"<a>", "b & c", "alone"} <= set(texts)
    for number in range(80):
        net.host(f"more{number}")
    assert svg(net.nodes, net.links) == ""


def test_a_result_shows_its_samples() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    net.tcp(a, b, label="one")
    assert "data:image/png" not in net.run("1 s")._repr_html_()
    net.record("100 ms", queues=[link])
    result = net.run("2 s")
    assert "data:image/png;base64,iVBOR" in result._repr_html_()
    goodput, delay = result.figure().axes
    (line,) = goodput.lines
    assert line.get_label() == "0 one"
    # 1448 of 1514 bytes of 10 Mbit/s.
    assert float(line.get_ydata()[-1]) == pytest.approx(9.56, abs=0.3)  # type: ignore[index]
    assert "a -> b" in [one.get_label() for one in delay.lines]


def test_each_queue_of_a_port_has_a_line() -> None:
    """DualPI2 has two at one link; a line through both would be a zigzag."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    net.tcp(a, b)
    net.record("100 ms", queues=[link])
    result = net.run("2 s")
    plain = result.queue_samples.filter(pl.col("queue") == "a -> b")
    both = pl.concat([plain, plain.with_columns(number=pl.lit(1, pl.Int64), queue_delay_ms=1.0)])
    result = replace(result, queue_samples=both.sort("time_s"))
    lines = {str(line.get_label()): line for line in result.figure().axes[1].lines}
    assert lines.keys() == {"a -> b [0]", "a -> b [1]"}
    assert set(np.asarray(lines["a -> b [1]"].get_ydata())) == {1.0}
    assert len(np.asarray(lines["a -> b [0]"].get_xdata())) == plain.height


def test_tables_become_pandas_ones() -> None:
    pytest.importorskip("pandas", reason="needs the extra `pandas`")
    pytest.importorskip("pyarrow", reason="needs the extra `pandas`")
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    net.tcp(a, b, label="one")
    flows = net.run("1 s").flows
    frame = flows.to_pandas()
    assert list(frame.columns) == flows.columns
    assert frame["label"].tolist() == ["one"]
    assert frame["goodput_mbps"].tolist() == flows["goodput_mbps"].to_list()


def test_a_bar_is_drawn_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    bar = NotebookBar("a < b")
    monkeypatch.setattr(bar, "_show", lambda text: (shown.append(text), setattr(bar, "_shown", bar)))
    bar(1, 4)
    bar(2, 4)
    bar(4, 4)
    assert shown == ['a &lt; b <progress value="0.2500" max="1"></progress> 25%', ""]


def outputs(notebook: Any) -> list[list[str]]:
    """Text and HTML of each cell's outputs, without pictures."""
    found = []
    for cell in notebook["cells"]:
        texts = []
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            html = "".join(data.get("text/html", ""))
            if "<progress" in html or (output["output_type"] == "display_data" and not html):
                continue
            texts.append((html or "".join(data.get("text/plain", output.get("text", "")))).split("<img")[0])
        found.append(texts)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_executed_again_shows_the_same(path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `docs`")
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `docs`")
    kept = json.loads(path.read_text())
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    again = outputs(notebook)
    assert again == outputs(kept)
    assert any(text for cell in again for text in cell)
