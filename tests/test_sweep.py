"""`tidegate sweep` and `tidegate tune`: tables, figures, and going on after an interruption."""

from __future__ import annotations

import csv
import errno
import json
import math
import re
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from conftest import Run as Command
from tidegate import TidegateError, experiments
from tidegate.experiments import digests, find, sweep, tune
from tidegate.experiments.answer import Answer
from tidegate.experiments.columns import Column, chosen
from tidegate.experiments.executors import Here
from tidegate.experiments.jobs import Ended, Jobs, NotCarriedOut, Tell
from tidegate.experiments.landscape import Landscape
from tidegate.experiments.plan import Run

NAME = "meter.rates"
QUICK = {"rates_mbps": (20,), "base_rtts_ms": (10.0,), "schemes": ("plain", "fair"), "duration_s": 2}


class Stopping:
    """Runs here, and Ctrl-C comes after so many runs."""

    def __init__(self, after: int) -> None:
        self._left = after

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        def stop(done: float, under_way: list[int], runs: list[Any]) -> None:
            tell(done, under_way, runs)
            self._left -= len(runs)
            if self._left <= 0:
                raise KeyboardInterrupt

        Here().run(jobs, stop, ended)


def drawn(folder: Path) -> list[Any]:
    figure = experiments.redraw(folder)
    return [(axes.get_title(), [image.get_array().tolist() for image in axes.images]) for axes in figure.axes]


@pytest.mark.slow
def test_a_sweep_is_one_table_and_one_figure_and_goes_on(tmp_path: Path) -> None:
    one = find(NAME)
    over = sweep.read_over(one, ["rates_mbps=20,50", "base_rtts_ms=1,10"])
    assert over == {"rates_mbps": [(20,), (50,)], "base_rtts_ms": [(1.0,), (10.0,)]}
    landscape = Landscape(tuple(over), column="goodput_mbps")

    def run(out: str, **how: Any) -> Answer:
        given = {**one.parameters(), **QUICK}
        return sweep.run(NAME, given, over, landscape=landscape, seeds=[1], out=tmp_path / out, **how)

    whole = run("whole")
    with pytest.raises(experiments.Interrupted, match="3 of 8 runs done"):
        run("parts", executor=Stopping(3))
    assert len((tmp_path / "parts" / "rows.csv").read_text().splitlines()) == 4
    again = run("parts", resume=True)
    assert again["rows"] == whole["rows"]
    table = list(csv.DictReader((tmp_path / "parts" / "rows.csv").open()))
    assert [(row["rates_mbps"], row["base_rtts_ms"], row["scheme"]) for row in table][:3] == [
        ("20", "1.0", "plain"), ("20", "1.0", "fair"), ("20", "10.0", "plain"),
    ]  # fmt: skip
    goodput = {(row["rates_mbps"], row["base_rtts_ms"], row["scheme"]): row["goodput_mbps"] for row in table}
    # What the experiment by itself gives.
    alone = experiments.run(NAME, {**QUICK, "rates_mbps": (50,)}, seeds=[1], out=tmp_path / "alone")
    assert [float(goodput["50", "10.0", name]) for name in ("plain", "fair")] == [
        row["goodput_mbps"] for row in alone["rows"]
    ]
    figure = drawn(tmp_path / "parts")
    assert [title for title, _ in figure][:2] == ["plain", "fair"]
    assert figure[0][1] == [
        [[float(goodput[rate, rtt, "plain"]) for rate in ("20", "50")] for rtt in ("1.0", "10.0")]
    ]
    with pytest.raises(TidegateError, match="there is no experiment 'sweep of meter"):
        experiments.find(json.loads((tmp_path / "parts" / "run.json").read_text())["experiment"])
    assert not again.complete_before
    assert run("parts", resume=True, executor=Stopping(0)).complete_before
    landscape = Landscape(tuple(over), column="goodput_mbps:max")
    drawn_again = run("parts", resume=True, executor=Stopping(0))
    assert (drawn_again["rows"], drawn_again.complete_before) == (whole["rows"], False)
    assert (
        json.loads((tmp_path / "parts" / "run.json").read_text())["landscape"]["column"] == "goodput_mbps:max"
    )


@pytest.mark.parametrize(
    ("over", "said"),
    [
        (["rates_mbps"], "write it as name=value,value"),
        (["rate_mbps=1,2"], "has no parameter 'rate_mbps'; did you mean 'rates_mbps'?"),
        (["mtu=1500,big"], "--over mtu=big: 'big' is not a whole number"),
        (["mtu=1500", "mtu=900"], "mtu is given twice"),
        (["mtu=1500,1500"], "a value is given twice"),
        (["mtu=1500,,900"], "--over mtu=1500,,900: a value is empty; write it as name=value,value"),
    ],
)
def test_wrong_values(over: list[str], said: str) -> None:
    with pytest.raises(TidegateError) as raised:
        sweep.read_over(find(NAME), over)
    assert said in str(raised.value)


def test_columns_and_their_aggregates() -> None:
    rows: list[dict[str, Any]] = [{"case": "a", "x": value, "s": "b"} for value in (1.0, 2.0, 9.0, None)]
    texts = ("x", "x:mean", "x:min", "x:max", "x:p50")
    assert [Column.parse(text).of(rows) for text in texts] == [2.0, 4.0, 1.0, 9.0, 2.0]
    with pytest.raises(TidegateError, match=r"no column of numbers 'y'; .*they have x"):
        Column("y").demand(rows)
    # NaN is as good as nothing, in any order; so is a cell of a sweep in which no row has the column.
    for order in ((math.nan, 1.0, 3.0), (3.0, 1.0, math.nan)):
        some: list[dict[str, Any]] = [{"x": value} for value in order]
        assert [Column.parse(f"x:{of}").of(some) for of in ("min", "median", "max")] == [1.0, 2.0, 3.0]
    assert math.isnan(Column("x").of([{"x": None}]))
    # An infinite value is no reason for NaN, or a warning of NumPy's, where it has no part in the aggregate.
    infinite = math.inf
    for values, of, right in (
        ((infinite, 1.0, 2.0), "median", 2.0),
        ((-infinite, 1.0, 3.0, infinite), "median", 2.0),
        ((infinite, 1.0), "median", infinite),
        ((infinite, infinite), "p95", infinite),
        ((-infinite, 1.0), "p10", -infinite),
    ):
        assert Column.parse(f"x:{of}").of([{"x": value} for value in values]) == right
    assert math.isnan(Column.parse("x:mean").of([{"x": infinite}, {"x": -infinite}]))
    with pytest.raises(TidegateError, match="no aggregate 'p0'"):
        Column.parse("x:p0")
    assert len(chosen(rows, [("x", "2.0")])) == 1
    with pytest.raises(TidegateError, match="no row has it; s is b"):
        chosen(rows, [("s", "c")])
    with pytest.raises(TidegateError, match="no column 'cas'; did you mean 'case'"):
        chosen(rows, [("s", "b"), ("cas", "a")])


def test_lines_of_one_parameter_have_each_scheme_s_spread() -> None:
    rows: list[dict[str, Any]] = [
        {"case": f"{n}", "seed": seed, "of": f"case-{n}", "n": n, "scheme": scheme, "y": float(n * seed)}
        for n in (1, 2, 40)
        for seed in (1, 2, 3)
        for scheme in ("a", "b")
    ]
    (axes,) = Landscape(("n",)).draw(rows).axes
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    assert axes.lines[0].get_ydata().tolist() == [2.0, 4.0, 80.0]  # type: ignore[union-attr]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == ("n", "y", "log")
    with pytest.raises(TidegateError, match="--by z: the rows have no such column"):
        Landscape(("n",), by="z").draw(rows)


def test_the_column_of_itself_is_one_that_varies_within_a_case() -> None:
    rows: list[dict[str, Any]] = [
        {"of": f"case-{case}", "n": n, "rtt_ms": float(case), "y_mbps": 10.0 * n}
        for case in (1, 2)
        for n in (1, 2)
    ]
    assert Landscape(("n",), likely=("rtt_ms",)).measured(rows) == Column("y_mbps")
    assert Landscape(("n",), likely=("rtt_ms",)).measured(rows[::2]) == Column("rtt_ms")
    # What a row lacks makes no second value.
    rows[0]["rtt_ms"], rows[3]["rtt_ms"] = float("nan"), None
    assert Landscape(("n",), likely=("rtt_ms",)).measured(rows) == Column("y_mbps")


def test_a_cell_without_the_column_is_empty_in_the_figure() -> None:
    rows: list[dict[str, Any]] = [
        {"case": "a", "seed": 1, "of": "a", "n": n, "y": y} for n, y in ((1, 2.0), (2, None))
    ]
    (axes,) = Landscape(("n",), column="y").draw(rows).axes
    assert [str(value) for value in axes.lines[0].get_ydata().tolist()] == ["2.0", "nan"]  # type: ignore[union-attr]


def test_a_misspelt_column_is_corrected_without_another_run(tmp_path: Path) -> None:
    def run(column: str, **how: Any) -> Any:
        shown = Landscape(("mtu",), column=column)
        given = {**find(NAME).parameters(), **QUICK, "schemes": ("plain",)}
        return sweep.run(NAME, given, {"mtu": [1500]}, landscape=shown, seeds=[1], out=tmp_path / "x", **how)

    with pytest.raises(TidegateError, match=r"--column goodputs: .*; the only run is done and in .*--resume"):
        run("goodputs")
    assert run("goodput_mbps", resume=True, executor=Stopping(0))["rows"]


class Without:
    """Runs have no number in a column."""

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        for index, seed in jobs.jobs:
            name = jobs.cases[index].name
            ended.runs.append(Run(name, seed, [{"goodput_mbps": math.nan, "drops": 1}], {}))


class Measured:
    """Runs that need no time; `noted` ones are kept, as those of Tidegate's executors are."""

    def __init__(self, noted: bool = False) -> None:
        self._noted = noted

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        for index, seed in jobs.jobs:
            run = Run(jobs.cases[index].name, seed, [{"goodput_mbps": 1.0}], {})
            ended.runs.append(run)
            if self._noted:
                jobs.store.add(run)


def test_a_study_does_not_go_on_with_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    tune.run(task(), trials=1, out=tmp_path / "x", executor=Measured())
    monkeypatch.setattr(digests, "of_tidegate", lambda: "another")
    with pytest.raises(
        TidegateError, match=r"the files of .* have changed since the study meter\.rates was begun"
    ):
        tune.run(task(), trials=2, out=tmp_path / "x", executor=Measured())


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("congestion_control=cubic,dctcp", "congestion_control=cubic,reno; give the same choices"),
        ("mtu=600:9000", "mtu=600:9000:log; give the same choices, or a range of the same kind"),
        ("mtu=1500,9000", "mtu=600:9000:log; give"),
        ("mtu=700:8000:log", None),
    ],
)
def test_a_study_takes_other_ends_of_a_range_alone(tmp_path: Path, other: str, said: str | None) -> None:
    optuna = pytest.importorskip("optuna", reason="needs the extra `tune`")
    tune.run(task(), trials=1, out=tmp_path / "x", executor=Measured())
    new = tune.Range.parse(other, find(NAME))
    changed = task(ranges=tuple(new if one.name == new.name else one for one in task().ranges))
    if said is None:
        assert len(tune.run(changed, trials=2, out=tmp_path / "x", executor=Measured())["trials"]) == 2
        return
    with pytest.raises(TidegateError, match=re.escape(said)):
        tune.run(changed, trials=2, out=tmp_path / "x", executor=Measured())
    study = optuna.load_study(study_name=NAME, storage=f"sqlite:///{tmp_path / 'x' / 'study.db'}")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"]


def test_trials_without_a_finite_objective_have_failed_and_do_not_go_on_for_ever(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    with pytest.raises(TidegateError, match="no trial has a value, the last as goodput_mbps is nan"):
        tune.run(task(), trials=4, out=tmp_path / "x", executor=Without())
    other = (tune.Objective(Column("goodput"), True),)
    with pytest.raises(TidegateError, match=r"no column of numbers 'goodput'; .*they have goodput_mbps"):
        tune.run(task(objectives=other), trials=4, out=tmp_path / "y", executor=Without())
    text = (tune.Objective(Column("scheme"), True),)
    with pytest.raises(TidegateError, match=r"no column of numbers 'scheme'; they have goodput_mbps"):
        task(objectives=text).demand([{"scheme": "plain", "goodput_mbps": 1.0}])


def test_a_misspelt_objective_is_corrected_without_another_run(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")

    def run(column: str, executor: Any, **how: Any) -> Any:
        objectives = (tune.Objective(Column(column), how.pop("maximise", True)),)
        about = task(objectives=objectives, **how)
        return tune.run(about, trials=4, out=tmp_path / "x", executor=executor)

    with pytest.raises(TidegateError, match="no column of numbers 'goodput'"):
        run("goodput", Measured(noted=True), maximise=False)
    # What the trials are of has to be the same.
    with pytest.raises(TidegateError, match="is of other seeds"):
        run("goodput_mbps", Measured(), seeds=(2,))
    with pytest.raises(TidegateError, match=r"cas"):
        run("goodput_mbps", Stopping(0), where=(("cas", "a"),))
    found = run("goodput_mbps", Stopping(0))
    assert [(one["trial"], one["goodput_mbps"]) for one in found["trials"]] == [(n, 1.0) for n in range(4)]
    assert not (tmp_path / "x" / "runs.jsonl").exists()
    # From the first value on it is a study of that column.
    with pytest.raises(TidegateError, match="is of other objectives"):
        run("drops", Measured())


def task(**given: Any) -> tune.Task:
    one = find(NAME)
    about: dict[str, Any] = {
        "experiment": NAME,
        "parameters": {**one.parameters(), **QUICK, "schemes": ("plain",)},
        "ranges": (
            tune.Range.parse("mtu=600:9000:log", one),
            tune.Range.parse("congestion_control=cubic,reno", one),
        ),
        "objectives": (tune.Objective(Column("goodput_mbps"), True),),
        "seeds": (1,),
    }
    return tune.Task(**{**about, **given})


@pytest.mark.slow
def test_a_study_goes_on_and_is_the_same(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    objectives = (tune.Objective(Column("drops"), False), tune.Objective(Column("goodput_mbps"), True))
    two = task(objectives=objectives)
    whole = tune.run(two, trials=8, out=tmp_path / "whole")
    part = tune.run(two, trials=4, out=tmp_path / "part")
    assert len(part["trials"]) == 4
    with pytest.raises(tune.Interrupted, match="4 of 8 trials done; the study has them"):
        tune.run(two, trials=8, out=tmp_path / "part", executor=Stopping(2))
    rest = tune.run(two, trials=8, out=tmp_path / "part", processes=2)
    assert rest["trials"] == whole["trials"]
    assert rest["best"] == whole["best"]
    assert (tmp_path / "part" / "trials.csv").read_bytes() == (tmp_path / "whole" / "trials.csv").read_bytes()
    # Nothing is run again.
    assert tune.run(two, trials=8, out=tmp_path / "part", executor=Stopping(0))["trials"] == rest["trials"]
    # The best are those that no other is better than in both.
    values = [tuple(trial[str(one.column)] for one in objectives) for trial in whole["trials"]]
    front = {
        one for one in values if not any(a <= one[0] and b >= one[1] and (a, b) != one for a, b in values)
    }
    assert {tuple(best["values"]) for best in whole["best"]} == front
    assert (tmp_path / "whole" / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "whole" / "trials.csv").read_text().splitlines()) == 9
    with pytest.raises(TidegateError, match=r"the study meter.rates is of other seeds: \[1\]"):
        tune.run(task(objectives=objectives, seeds=(2,)), trials=8, out=tmp_path / "whole")


@pytest.mark.slow
def test_bad_trials_are_given_up_and_a_journal_is_a_storage(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    one = tune.Range.parse("mtu=600:9000", find(NAME))
    pruned = task(ranges=(one,), seeds=(1, 2), prune=True)
    answer = tune.run(pruned, trials=10, out=tmp_path / "study", storage=str(tmp_path / "journal"))
    given_up = [trial for trial in answer["trials"] if trial["state"] == "pruned"]
    assert given_up
    complete = sorted(trial["goodput_mbps"] for trial in answer["trials"] if trial["state"] == "complete")
    assert min(trial["goodput_mbps"] for trial in given_up) < complete[-1]
    assert not (tmp_path / "study" / "study.db").exists()


class Counting:
    """Runs that need no time and have a value by their case and seed; after so many, the scheduler goes, or this process."""

    def __init__(self, after: int | None = None, with_error: BaseException | None = None) -> None:
        self.runs: list[tuple[str, int]] = []
        self._after, self._error = after, with_error

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        for index, seed in jobs.jobs:
            if len(self.runs) == self._after:
                assert self._error is not None
                ended.error = self._error
                return
            name = jobs.cases[index].name
            self.runs.append((name, seed))
            value = zlib.crc32(f"{jobs.cases[index].name} {seed}".encode()) % 997
            ended.runs.append(Run(name, seed, [{"goodput_mbps": value}], {}, (f"of {seed}",)))
            jobs.store.add(ended.runs[-1])


@pytest.mark.slow
@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize("after", [1, 14])
def test_runs_of_a_batch_are_kept_and_a_study_that_was_interrupted_anywhere_is_the_same(
    tmp_path: Path, prune: bool, after: int
) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    about = task(seeds=(1, 2), prune=prune)
    uninterrupted = Counting()
    whole = tune.run(about, trials=10, out=tmp_path / "whole", executor=uninterrupted)
    first = Counting(after, NotCarriedOut("the scheduler has gone"))
    with pytest.raises(NotCarriedOut, match="the scheduler has gone"):
        tune.run(about, trials=10, out=tmp_path / "part", executor=first)
    # A line that was cut off, as by a full disk, is of no run.
    with (tmp_path / "part" / "runs.jsonl").open("a") as journal:
        journal.write('{"of": "')
    rest = Counting()
    part = tune.run(about, trials=10, out=tmp_path / "part", executor=rest, resume=True)
    assert first.runs + rest.runs == uninterrupted.runs
    for key in ("trials", "best", "warnings"):
        assert part[key] == whole[key]
    assert not (tmp_path / "part" / "runs.jsonl").exists()


@pytest.mark.slow
def test_a_study_of_a_process_that_was_killed_while_it_asked_is_the_same(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna", reason="needs the extra `tune`")
    whole = tune.run(task(), trials=14, batch=6, out=tmp_path / "whole", executor=Counting())["trials"]
    script = (
        "import os, sys; sys.path[:0] = sys.argv[1:3]; import optuna, test_sweep; from pathlib import Path\n"
        "kind, name, left = (*sys.argv[3].split('.'), [int(sys.argv[4])])\n"
        "owner = getattr(optuna.study if kind == 'Study' else optuna.trial, kind)\n"
        "asked = getattr(owner, name)\n"
        "def dying(*given, **named):\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os.kill(os.getpid(), 9)\n"
        "    return asked(*given, **named)\n"
        "setattr(owner, name, dying)\n"
        "test_sweep.tune.run(test_sweep.task(), trials=14, batch=6, out=Path(sys.argv[5]), executor=test_sweep.Counting())"
    )
    here = str(Path(__file__).parent)
    for number, when in enumerate(("Study.ask 13", "Trial.suggest_categorical 14")):
        out = tmp_path / str(number)
        words = [sys.executable, "-c", script, here, str(Path(here).parent), *when.split(), str(out)]
        assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
        study = optuna.load_study(study_name=NAME, storage=f"sqlite:///{out / 'study.db'}")
        assert any(not trial.state.is_finished() for trial in study.trials)
        assert tune.run(task(), trials=14, batch=6, out=out, executor=Counting())["trials"] == whole


def test_trials_whose_runs_end_the_study_have_failed(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    with pytest.raises(ZeroDivisionError):
        tune.run(task(), trials=4, out=tmp_path / "x", executor=Counting(2, ZeroDivisionError()))
    states = [
        one["state"] for one in tune.run(task(), trials=4, out=tmp_path / "x", executor=Counting())["trials"]
    ]
    assert states == ["fail"] * 4 + ["complete"] * 4


def test_resume_goes_on_with_a_study_that_is_there(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    for storage in (None, str(tmp_path / "journal"), f"sqlite:///{tmp_path / 'other.db'}"):
        with pytest.raises(
            TidegateError, match=r"has no study meter\.rates to go on with; leave out --resume"
        ):
            tune.run(task(), trials=2, out=tmp_path / "x", storage=storage, executor=Counting(), resume=True)
    assert not (tmp_path / "x").exists()
    tune.run(task(), trials=2, out=tmp_path / "x", executor=Counting())
    for complete in (False, True):
        again = tune.run(task(), trials=4, out=tmp_path / "x", executor=Counting(), resume=True)
        assert (len(again["trials"]), again.complete_before) == (4, complete)


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), ImportError("no dask")])
@pytest.mark.parametrize("kept", [False, True])
def test_an_error_of_the_executor_is_not_one_of_the_storage(
    tmp_path: Path, error: Exception, kept: bool
) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")

    class Failing:
        def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
            if not kept:
                raise error
            ended.error = error

    with pytest.raises(type(error)) as raised:
        tune.run(task(), trials=1, out=tmp_path / "x", executor=Failing())
    assert raised.value is error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sweep", NAME, "--over", "mtu=900,1500", "--set", "mtu=600"], "mtu is in --over and in --set"),
        (["tune", NAME, "--range", "mtu=900:1500", "--set", "mtu=600"], "mtu is in --range and in --set"),
        (["run", NAME, "--view-port", "9000"], "--view-port is for --view; give it too"),
    ],
)
def test_options_of_which_one_would_not_count(tidegate: Command, words: list[str], said: str) -> None:
    refused = tidegate(*words, "--quick")
    assert refused.code == 1
    assert said in refused.err


def test_a_parameter_with_the_name_of_a_run_s_column_is_not_varied() -> None:
    with pytest.raises(TidegateError, match="the parameter seed cannot be varied: rows have a column seed"):
        sweep.Points(NAME, {}, [{"seed": 1}]).cases(0)


def test_what_cannot_be_tuned(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    one = find(NAME)
    for text, said in (
        ("mtu", "write it as name=low:high"),
        ("mtu=9000:600", "low is to be below high"),
        ("mtu=600:9000:lin", "stands `log` or nothing"),
        ("ecn=on:off", "ecn is not a number"),
        ("mut=1:2", "did you mean 'mtu'?"),
        ("mtu=0:9000", "mtu is 0; give a number "),
        ("schemes=plain,fiar", "schemes is 'fiar'; did you mean 'fair'?"),
        ("congestion_control=cubic,cubic", "a value is given twice"),
    ):
        with pytest.raises(TidegateError) as raised:
            tune.Range.parse(text, one)
        assert said in str(raised.value)
    two = (tune.Objective(Column("drops"), False),) * 2
    with pytest.raises(TidegateError, match="--prune is for one objective"):
        tune.run(task(objectives=two, prune=True, seeds=(1, 2)), trials=1, out=tmp_path / "x")
    with pytest.raises(TidegateError, match="give --repeat 2 or more"):
        tune.run(task(prune=True), trials=1, out=tmp_path / "x")
    both = (tune.Objective(Column("drops"), False), tune.Objective(Column("drops"), True))
    with pytest.raises(
        TidegateError, match="drops is in --minimise and --maximise twice in all; give it once"
    ):
        tune.run(task(objectives=both), trials=1, out=tmp_path / "x")
    (tmp_path / "mine").write_text("")
    with pytest.raises(TidegateError, match="does not hold a study"):
        tune.run(task(), trials=1, out=tmp_path)
    with pytest.raises(TidegateError, match=r"--storage sqlite:////no/such/place\.db: "):
        tune.run(task(), trials=1, out=tmp_path / "x", storage="sqlite:////no/such/place.db")
