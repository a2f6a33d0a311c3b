"""Reports: what is in them, hostile names, and flent's files."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from conftest import Run as Command
from tidegate import TidegateError, report
from tidegate.cli.output import print_rows
from tidegate.experiments import Run, folder, run
from tidegate.report import flent, page, series
from tidegate.results import TABLES

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\'"&\u2028'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "run"
    run("reference.dumbbell", {"flows": (1, 2), "duration_s": 2.1}, seeds=[1, 2], quick=True, out=out)
    return out


class Found(HTMLParser):
    """Elements of a page, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements[-1:] and self.elements[-1][0] == "script":
            self.scripts.append(data)


def test_a_run_has_a_report_with_its_figure_claims_and_series(made: Path) -> None:
    text = (made / "report.html").read_text()
    found = Found(text)
    record = folder.read_record(made)
    for claim in record["claims"]:
        assert page.escape(claim["statement"]) in text
    assert f"data:image/png;base64,{base64.b64encode((made / 'figure.png').read_bytes()).decode()}" in text
    cases = json.loads(next(one for one in found.scripts if one.startswith("[")))
    assert len(cases) == len({row["case"] for row in record["rows"]})
    goodput = cases[0][0]
    assert goodput["title"] == "Goodput"
    last = np.frombuffer(base64.b64decode(goodput["series"][0][1]), "<f4")[-1]
    assert last > 1
    assert re.search(r">tidegate run reference\.dumbbell --quick .*--set duration_s=2\.1 --repeat 2<", text)


def test_nothing_is_fetched_and_only_its_own_script_runs(made: Path) -> None:
    text = (made / "report.html").read_text()
    found = Found(text)
    policy = next(a["content"] for t, a in found.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    code = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(code) == 1
    digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    for _, attributes in found.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;"))


def hostile() -> tuple[dict[str, Any], list[Run]]:
    claim = {
        "id": EVIL,
        "of": EVIL,
        "statement": EVIL,
        "published": EVIL,
        "measured": EVIL,
        "holds": False,
        "why": EVIL,
    }
    record = {
        "experiment": EVIL,
        "backend": EVIL,
        "parameters": {EVIL: EVIL, "quick": False},
        "seeds": [1],
        "rows": [{"case": EVIL, "seed": 1, EVIL: EVIL, "x": float("nan")}],
        "claims": [claim],
        "warnings": [EVIL],
        "versions": {"tidegate": EVIL},
    }
    notes = pl.DataFrame(
        {"time_s": [0.0, 1.0], "switch": [EVIL] * 2, "quantity": [EVIL] * 2, "value": [1.0, 2.0]}
    )
    tables = dict.fromkeys(TABLES, pl.DataFrame()) | {"notes": notes}
    return record, [Run(EVIL, 1, [], tables)]


def test_names_cannot_inject_anything() -> None:
    record, runs = hostile()
    text = page.of_run(record, runs, b"png")
    found = Found(text)
    plain = Found(page.of_run({**record, "experiment": "x"}, runs, b"png"))
    assert [t for t, _ in found.elements] == [t for t, _ in plain.elements]
    assert sum(t == "script" for t, _ in found.elements) == 2
    assert not any("onerror" in a for _, a in found.elements)
    shown = json.loads(next(one for one in found.scripts if one.startswith("[")))
    assert shown[0][0]["series"][0][0].startswith("</script>")


def test_several_runs_in_one_page(made: Path, tmp_path: Path) -> None:
    out = report.join([made, made], tmp_path / "both.html")
    text = out.read_text()
    assert 'id="run0-claims"' in text
    assert 'id="run1-claims"' in text
    assert "All runs of reference.dumbbell" in text
    identities = [a["id"] for _, a in Found(text).elements if "id" in a]
    assert len(identities) == len(set(identities))
    with pytest.raises(TidegateError, match="is a folder; give a file's name"):
        report.join([made], tmp_path)
    with pytest.raises(TidegateError, match="does not hold a run"):
        report.write(tmp_path)


def test_a_page_replaces_no_file_of_another_kind(made: Path, tmp_path: Path, tidegate: Command) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("mine")
    ran = tidegate("report", made, "--out", mine)
    assert (ran.code, ran.err) == (
        1,
        f"{mine}: the page of a report has a name with .html; give such a name\n",
    )
    assert mine.read_text() == "mine"


def test_a_run_given_twice_is_refused(made: Path, tidegate: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.parent)
    ran = tidegate("report", made, Path(made.name), "--out", "both.html")
    assert ran.code == 1
    assert ran.err == f"{made.name} is given twice; give each once\n"
    assert not Path("both.html").exists()


def test_what_is_missing_in_a_row_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"case": "a", "share": 0.5}, {"case": "b", "share": None}], ())
    assert "None" not in (said := capsys.readouterr().out)
    assert re.search(r"b +│ +- ", said)


def test_a_fault_in_the_report_costs_the_report_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise ValueError("a fault")

    monkeypatch.setattr(report, "of_run", broken)
    answer = run(
        "reference.dumbbell", {"flows": (1,), "duration_s": 2.1}, seeds=[1], quick=True, out=tmp_path / "run"
    )
    assert answer["warnings"] == [
        "report.html could not be made: ValueError: a fault; `tidegate report` on the run's folder shows why"
    ]
    assert (tmp_path / "run" / "figure.png").exists()
    assert not (tmp_path / "run" / "report.html").exists()


def test_many_samples_keep_their_peaks() -> None:
    times = np.arange(100_000) / 1000
    values = np.zeros((100_000, 1))
    values[54_321] = 7.0
    x, [y] = series.levels(series._Grid(times, ["q"], values))
    assert len(x) == 2 * series.POINTS
    assert np.nanmax(y) == 7.0
    assert abs(x[np.nanargmax(y)] - 54.321) < 0.2
    counts = np.cumsum(np.full((100_000, 1), 125.0), axis=0)
    x, [y] = series.rates(series._Grid(times, ["q"], counts))
    assert len(x) <= series.POINTS
    assert np.allclose(y, 125_000)


def test_series_that_are_sampled_at_other_times_have_their_own_rates() -> None:
    """A flow at 0, 1, 2 s and another 10 ms later: both count 1 a second."""
    times = np.array([0, 0.01, 1, 1.01, 2, 2.01])
    values = np.full((6, 2), np.nan)
    values[::2, 0] = values[1::2, 1] = [0, 1, 2]
    x, rates = series.rates(series._Grid(times, ["a", "b"], values))
    assert np.allclose(x, times[1:])
    for rate, missing in zip(rates, ([4], [0]), strict=True):
        assert np.flatnonzero(np.isnan(rate)).tolist() == missing
        assert np.allclose(np.delete(rate, missing), 1)


def test_all_bytes_that_flent_s_samples_count_are_in_a_rate() -> None:
    """Also those between the last whole step and the last sample, which a real host takes when it comes to it."""
    times = [0.003, 0.012, 0.021, 0.034, 0.0462]
    part = pl.DataFrame({"time_s": times, "bytes": [0, 100, 300, 600, 1000]})
    for last, step in ((0.06, 0.01), (0.0501, 0.01), (0.0462, 0.0154)):
        steps = np.arange(0, last + step / 2, step)
        rates = flent._rates(part, steps)
        known = [rate for rate in rates if rate is not None]
        assert sum(known) * step * 1e6 / 8 == pytest.approx(1000), (last, rates)
        assert rates[0] is None
        assert np.isfinite(known).all()


def test_flent_reads_what_is_written(made: Path, tmp_path: Path) -> None:
    paths = report.write_flent(made, tmp_path / "flent")
    assert len(paths) == 4
    with gzip.open(paths[-1]) as file:
        data = json.load(file)
    # What its resultset.py asks for: all series as long as the x values, and times that it can parse.
    assert data["version"] == 4
    assert all(len(values) == len(data["x_values"]) for values in data["results"].values())
    assert data["raw_values"].keys() <= data["results"].keys() == data["metadata"]["SERIES_META"].keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", data["metadata"]["T0"])
    assert all(
        {"t", "val", "tcp_rtt", "tcp_cwnd"} <= one.keys() for one in data["raw_values"]["TCP upload::1"][1:]
    )
    flows = pl.read_parquet(made / "tables" / f"{paths[-1].name.split('-')[1]}-2" / "flows.parquet")
    total = sum(v for v in data["results"]["TCP upload sum"] if v is not None) * data["metadata"]["STEP_SIZE"]
    assert total == pytest.approx(flows["bytes_received"].sum() * 8e-6, rel=0.05)
    resultset = pytest.importorskip("flent.resultset", reason="needs flent (`make extras`)")
    assert "TCP upload::1" in resultset.load(str(paths[-1])).series_names


def test_flent_s_files_are_as_many_as_the_runs(made: Path, tmp_path: Path) -> None:
    """Names that are cut, or have characters that a file's name is better without, are not the same then."""
    names = ["p<1", "p>1", "p_1", "n" * 220]
    there = tmp_path / "run"
    record = folder.read_record(made)
    case = record["rows"][0]["case"]
    rows = []
    for name in names:
        for seed in (1, 2):
            rows.append({"case": name, "seed": seed})
            shutil.copytree(made / "tables" / f"{case}-1", there / "tables" / f"{name}-{seed}")
    (there / "run.json").write_text(json.dumps({**record, "rows": rows, "claims": [], "warnings": []}))
    written = report.write_flent(there, tmp_path / "flent")
    titles = []
    for path in written:
        with gzip.open(path) as file:
            titles.append(json.load(file)["metadata"]["TITLE"])
    assert titles == [f"{record['experiment']} {row['case']} seed {row['seed']}" for row in rows]
    assert f"{record['experiment']}-p_1-2.flent.gz" in {path.name for path in written}


def test_flows_of_one_sample_each_have_no_series_for_flent(made: Path) -> None:
    (one, *_) = folder.runs_of(made, folder.read_record(made))
    samples = one.tables["flow_samples"]
    two = pl.concat([samples[:1], samples[1:2].with_columns(flow=pl.col("flow") + 1)])
    assert flent.of_run(replace(one, tables={**one.tables, "flow_samples": two}), "x", 0.0) is None


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {"experiment": "my.rates", "source": "/home/me/my.py:rates", "parameters": {"n": 1}},
            "tidegate run /home/me/my.py:rates --set n=1",
        ),
        (
            {
                "experiment": "sweep of meter.rates",
                "parameters": {"over": {"mtu": [900, 1500], "schemes": [["fair"]]}},
            },
            "tidegate sweep meter.rates --over mtu=900,1500 --over schemes=fair",
        ),
        (
            {"experiment": "x.y", "backend": "live", "live_profile": "exact", "parameters": {}},
            "tidegate run x.y --backend live --live-profile exact",
        ),
    ],
)
def test_the_command_names_files_sweeps_and_profiles(record: dict[str, Any], said: str) -> None:
    assert page.command({**record, "seeds": [1]}) == said
