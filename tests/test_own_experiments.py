"""Experiments and systems that are the user's: of files, of folders, of installed packages; and what their mistakes are told as."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from conftest import Run
from own import ENDS, PLAN, written
from own import here as here
from tidegate import TidegateError, experiments
from tidegate.experiments import digests, files, user_code
from tidegate.experiments.folder import JOURNAL, Work, read_record
from tidegate.experiments.tune_batch import Journal
from tidegate.report import page
from tidegate.templates import new_experiment, new_system


@pytest.mark.parametrize("process", [False, True])
def test_what_the_users_code_prints_is_not_in_the_answer(here: Path, tidegate: Run, process: bool) -> None:
    said = ["imported", "planned", "measured", "judged", "drawn"]
    text = PLAN + ENDS
    text = text.replace("def mine", "print('imported')\n\ndef mine").replace(
        "return Plan", "print('planned'); return Plan"
    )
    text = text.replace("    return {", "    print('measured')\n    return {")
    text = text.replace("rows: []", "rows: print('judged') or []").replace(
        "runs: F", "runs: print('drawn') or F"
    )
    written(here, text)
    ran = tidegate("run", "./my.py:mine", "--json", process=process)
    assert (ran.code, json.loads(ran.out)["experiment"]) == (0, "my.mine")
    assert [word for word in said if word not in ran.err] == []
    ran = tidegate("run", "./my.py:mine", "--set", "duration_ms=0", "--json", process=process)
    assert (ran.code, list(json.loads(ran.out))) == (1, ["error"])
    listed = tidegate("list", "./my.py:mine", "--json", process=process)
    assert (listed.code, list(json.loads(listed.out))) == (0, ["experiments", "left_out"])
    # Without --json it is where what is printed goes.
    plain = tidegate("run", "./my.py:mine", process=process)
    assert "planned" in plain.out


def test_a_path_is_a_value_of_a_sweep(here: Path, tidegate: Run) -> None:
    written(here, (PLAN + ENDS).replace("duration_ms: ", "trace: str = 'none', duration_ms: ", 1))
    words = ("--over", "trace=data/a.csv,data/b.csv", "--set", "duration_ms=50", "--out", "swept")
    ran = tidegate("sweep", "./my.py:mine", *words, "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [row["trace"] for row in rows] == ["data/a.csv", "data/b.csv"]
    assert [row["case"].split()[0] for row in rows] == ["trace=data_a.csv", "trace=data_b.csv"]
    assert tidegate("plot", "swept").code == 0
    refused = tidegate("plot", "swept", "--source", "./my.py:mine")
    assert (refused.code, "a sweep is drawn from its rows alone; leave out --source" in refused.err) == (
        1,
        True,
    )


def test_a_function_of_a_file_runs_and_is_drawn_again(here: Path, tidegate: Run) -> None:
    written(here, PLAN + ENDS)
    ran = tidegate("run", "./my.py:mine", "--set", "duration_ms=200", "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert (answer["experiment"], answer["parameters"]["duration_ms"]) == ("my.mine", 200)
    assert 0 < answer["rows"][0]["goodput"] < 10
    assert answer["out"] == "runs/my.mine"
    # The command that a message names is one that can be given.
    refused = tidegate("run", "./my.py:mine", "--set", "flows=2")
    assert "(`tidegate list ./my.py:mine` says what each is)" in refused.err
    assert tidegate("list", "./my.py:mine").code == 0
    (here / "my.py").rename(here / "moved.py")
    written(here, "raise KeyError('it was run')")
    refused = tidegate("plot", "runs/my.mine")
    assert refused.code == 1
    assert (
        "my.py:mine, which is not run unless you name it; if you trust that file: tidegate plot"
        in refused.err
    )
    drawn = tidegate("plot", "runs/my.mine", "--source", "moved.py:mine")
    assert drawn.out.strip() == "runs/my.mine/figure.png", drawn.err


def test_an_experiment_s_name_in_a_record_runs_no_file(here: Path, tidegate: Run) -> None:
    written(here, "raise KeyError('it was run')")
    about = {"experiment": "./my.py:mine", "parameters": {}, "rows": [{"case": "a", "seed": 1}]}
    (here / "run.json").write_text(json.dumps(about))
    refused = tidegate("plot", ".")
    assert (refused.code, "which is not run unless you name it" in refused.err) == (1, True)


def test_a_file_s_experiments_are_listed(here: Path, tidegate: Run) -> None:
    decorated = '\nfrom tidegate.experiments import experiment\n\n@experiment("our.other")\ndef other() -> Plan:\n    """Another."""\n    return mine()\n'
    written(here, PLAN + ENDS.replace("100):", "100) -> Plan:") + decorated)
    listed = json.loads(tidegate("list", "./my.py", "--json").out)["experiments"]
    assert sorted(one["name"] for one in listed) == ["my.mine", "our.other"]
    ran = tidegate("run", "my.py")
    assert ran.code == 1
    assert "my.py has 2 experiments; give one of" in ran.err
    assert tidegate("run", "my.py:other").code == 0


def test_two_files_of_one_name_are_two(here: Path) -> None:
    for folder, rate in (("a", "10 Mbit/s"), ("b", "20 Mbit/s")):
        (here / folder).mkdir()
        written(here / folder, (PLAN + ENDS).replace("10 Mbit/s", rate))
    fast, slow = (
        experiments.run(f"{folder}/my.py:mine", {}, seeds=[1], out=here / f"run-{folder}") for folder in "ba"
    )
    assert fast["rows"][0]["goodput"] > slow["rows"][0]["goodput"]


def version(folder: Path, rate: str) -> None:
    """A version of a package and of a file, with helpers that are imported at once and when they are needed."""
    (folder / "step" / "experiments").mkdir(parents=True)
    for place in (folder / "step", folder / "step" / "experiments"):
        (place / "__init__.py").touch()
    now = PLAN.replace("10 Mbit/s", rate)
    late = f"def delay():\n    return {50 if rate == '10 Mbit/s' else 60}\n"
    ends = """
    def mine() -> Plan:
        from {late} import delay
        return Plan([Case("one", net(), f"{{delay()}} ms", late_row)], lambda rows: [], lambda runs: Figure())

    def late_row(result):
        from {late} import delay
        return {{"delay": delay(), **row(result)}}
    """
    for place, name in ((folder / "step", "..{}"), (folder, "{}")):
        written(place, now, "plans.py")
        written(place, late, "later.py")
        file = place / "experiments" / "thr.py" if name[0] == "." else place / "thr.py"
        begin = f"from {name.format('plans')} import *\n"
        file.write_text(begin + dedent(ends).format(late=name.format("later")))


@pytest.mark.parametrize("reference", ["thr.py:mine", "step:mine"])
def test_each_of_two_versions_runs_its_own_modules(here: Path, tidegate: Run, reference: str) -> None:
    for number, rate in ((1, "10 Mbit/s"), (2, "20 Mbit/s")):
        version(here / f"v{number}", rate)
    ran = tidegate("compare", f"v1/{reference}", f"v2/{reference}", "--repeat", 1, "--json")
    assert ran.code == 0, ran.err
    rows = {row["quantity"]: [one["median"] for one in row["sides"]] for row in json.loads(ran.out)["rows"]}
    assert rows["delay"] == [50, 60]
    assert rows["goodput"][0] < 10 < rows["goodput"][1]
    again = experiments.run(f"v1/{reference}", {}, seeds=[1], out=here / "again")
    assert [again["rows"][0][name] for name in ("delay", "goodput")] == [rows[name][0] for name in rows]


def test_a_package_of_a_name_that_python_has_is_refused(here: Path, tidegate: Run) -> None:
    version(here, "10 Mbit/s")
    (here / "step").rename(here / "json")
    ran = tidegate("run", "./json:mine")
    assert ran.code == 1
    assert "thr.py: Python has another json already: " in ran.err


@pytest.mark.parametrize(
    ("returned", "rows"),
    [
        (
            "{'a': np.int64(3), 'b': np.bool_(True), 'c': np.float32(0.5), 'd': [np.float64(2)], 'e': (1, np.str_('x'))}",
            [{"a": 3, "b": True, "c": 0.5, "d": [2.0], "e": [1, "x"]}],
        ),
        ("[{'a': 1}, {'b': 'text'}]", [{"a": 1}, {"b": "text"}]),
        ("[]", []),
    ],
)
def test_rows_of_numpy_s_numbers_of_other_columns_and_none_are_kept_and_shown(
    here: Path, tidegate: Run, returned: str, rows: list[dict[str, Any]]
) -> None:
    written(here, PLAN.replace("return {", f"import numpy as np; return {returned}; return {{") + ENDS)
    ran = tidegate("run", "./my.py:mine")
    assert ran.code == 0, ran.err
    assert all(str(value) in ran.out for row in rows for pair in row.items() for value in pair)
    assert ("no rows" in ran.out) == (not rows)
    kept = read_record(here / "runs" / "my.mine")["rows"]
    assert kept == [{"case": "one", "seed": 1, **row} for row in rows]


def test_a_claim_that_numpy_has_judged_is_kept(here: Path, tidegate: Run) -> None:
    claim = "Claim('a', 'ours', 'it is', None, '1', holds=np.median([row['goodput'] for row in rows]) > 0)"
    begin = "import numpy as np\nfrom tidegate.claims import Claim\n"
    written(here, begin + PLAN + ENDS.replace("lambda rows: []", f"lambda rows: [{claim}]"))
    ran = tidegate("run", "./my.py:mine", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["claims"][0]["holds"] is True


def test_claims_are_corrected_without_another_run(here: Path, tidegate: Run) -> None:
    """Their file has changed then; the runs are of the one of before, which the record says."""
    begin = "from tidegate.claims import Claim\n"
    wrong = PLAN + ENDS.replace(
        "lambda rows: []", "lambda rows: [Claim('a', 'ours', 'it is', None, 1, True)]"
    )
    written(here, begin + wrong)
    failed = tidegate("run", "./my.py:mine", process=True)
    assert failed.code == 1
    assert "the only run is done and in runs/my.mine; correct that, and --resume runs nothing" in failed.err
    before = read_record(here / "runs" / "my.mine")
    # Another run would fail.
    written(here, begin + wrong.replace("None, 1,", "None, '1',").replace("goodput_mbps", "gone"))
    again = tidegate("run", "./my.py:mine", "--resume", "--json", process=True)
    assert again.code == 0, again.err
    after = read_record(here / "runs" / "my.mine")
    assert (after["rows"], after["files"]) == (before["rows"], before["files"])
    assert "the experiment's files have changed since its runs were done" in again.json["warnings"][0]


def test_names_are_shown_as_they_are(here: Path, tidegate: Run) -> None:
    """And not read as markup or emoji."""
    names = "'flow[ecn]': 1.5, 'a[/b]': ':x:'"
    written(here, PLAN.replace("return {", f"return {{{names}, ") + ENDS.replace('"one"', '"in[bold]out"'))
    ran = tidegate("run", "./my.py:mine")
    assert ran.code == 0, ran.err
    compared = tidegate("compare", "runs/my.mine", "./my.py:mine", "--repeat", 1)
    assert compared.code == 0, compared.err
    for name in ("in[bold]out", "flow[ecn]", "a[/b]", ":x:"):
        assert name in ran.out
    assert "in[bold]out" in compared.out
    assert "flow[ecn]" in compared.out


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("None", "my.py:13: row returns None"),
        ("[]", "the rows have no measured column"),
        ("[{'a': 1}, {'b': 1.5}]", ""),
    ],
)
def test_a_sweep_of_rows_that_are_not_as_they_should_be(
    here: Path, tidegate: Run, returned: str, said: str
) -> None:
    written(here, PLAN.replace("return {", f"return {returned}; return {{") + ENDS)
    ran = tidegate("sweep", "./my.py:mine", "--over", "duration_ms=50,60", *(() if said else ("--by", "b")))
    assert (ran.code, said in ran.err) == (1 if said else 0, True), ran.err


def test_a_sweep_s_own_column_keeps_its_name(here: Path, tidegate: Run) -> None:
    written(here, PLAN.replace("return {", "return {'of': 'mine', ") + ENDS)
    ran = tidegate("sweep", "./my.py:mine", "--over", "duration_ms=50,60", "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert {(row["of"], row["measured_of"]) for row in rows} == {("one", "mine")}


def test_annotations_say_the_types_and_the_returned_one_may_be_unknown(here: Path, tidegate: Run) -> None:
    text = (
        """
        from __future__ import annotations
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from tidegate.experiments import Plan

        def mine(rate_mbps: float = 100, flows: int = 1) -> Plan:
            from plans import planned
            return planned(rate_mbps)
        """
    )  # fmt: skip
    written(here, text)
    written(here, PLAN + ENDS.replace("mine(duration_ms: int = 100)", "planned(duration_ms)"), "plans.py")
    ran = tidegate("run", "./my.py:mine", "--set", "rate_mbps=102.5", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["parameters"]["rate_mbps"] == 102.5
    listed = tidegate("list", "./my.py", "--json")
    assert listed.code == 0, listed.err


def test_a_run_goes_on_with_the_same_files_only(here: Path) -> None:
    """Another file of the same name, other contents, a case that is gone: nothing is mixed."""

    def stop(status: experiments.Status) -> None:
        if status.finished:
            raise KeyboardInterrupt

    def run(name: str, **how: Any) -> dict[str, Any]:
        return experiments.run(f"{name}:mine", {}, seeds=[1, 2], out=here / "run", **how)

    for folder in "ac":
        (here / folder).mkdir()
        written(here / folder, PLAN + ENDS)
    with pytest.raises(KeyboardInterrupt):
        run("a/my.py", watch=stop)
    with pytest.raises(
        TidegateError, match=r"is a run with another source: .*a/my.py:mine and not .*c/my.py:mine; give"
    ):
        run("c/my.py", resume=True)
    record = json.loads((here / "run" / "run.json").read_text())
    for files_, said in (
        ({**record["files"], "experiment": "0"}, "the experiment's files have changed since"),
        (
            {"experiment": "0", "tidegate": "0"},
            "the experiment's files and Tidegate's files have changed since",
        ),
        (None, "does not say of which files it is"),
    ):
        (here / "run" / "run.json").write_text(json.dumps({**record, "files": files_}))
        with pytest.raises(TidegateError, match=said):
            run("a/my.py", resume=True)
    rows = [{**row, "case": "other"} for row in record["rows"]]
    (here / "run" / "run.json").write_text(json.dumps({**record, "rows": rows}))
    (here / "run" / "tables" / "one-1").rename(here / "run" / "tables" / "other-1")
    with pytest.raises(TidegateError, match=r"has a case other, which my\.mine does not have"):
        run("a/my.py", resume=True)
    (here / "run" / "run.json").write_text(json.dumps(record))
    (here / "run" / "tables" / "other-1").rename(here / "run" / "tables" / "one-1")
    assert len(run("a/my.py", resume=True)["rows"]) == 2


def no_json(constant: str) -> None:
    raise AssertionError(f"JSON has no {constant}")


def test_what_is_not_finite_is_null_in_json_and_itself_for_claims(here: Path, tidegate: Run) -> None:
    """`None` of a row stays `None`; of a run that goes on, claims see what they would have seen."""

    def stop(status: experiments.Status) -> None:
        if status.finished:
            raise KeyboardInterrupt

    odd = "{'never': float('nan'), 'none': None, 'each': [1.0, -float('inf')], "
    judged = "def judge(rows):\n    assert all(row['never'] != row['never'] and row['each'][1] < 0 for row in rows)\n    return []\n"
    written(
        here, PLAN.replace("return {", f"return {odd}") + judged + ENDS.replace("lambda rows: []", "judge")
    )
    with pytest.raises(KeyboardInterrupt):
        experiments.run("my.py:mine", {}, seeds=[1, 2], out=here / "run", watch=stop)
    ran = tidegate("run", "my.py:mine", "--repeat", 2, "--out", "run", "--resume", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out, parse_constant=no_json)
    kept = json.loads((here / "run" / "run.json").read_text(), parse_constant=no_json)
    for row in told["rows"] + kept["rows"]:
        assert (row["never"], row["none"], row["each"]) == (None, None, [1.0, None])
    for row in read_record(here / "run")["rows"]:
        assert (row["none"], row["each"]) == (None, [1.0, -math.inf])
        assert math.isnan(row["never"])
    for wrong in ([[0, "none", "9"]], [[0, "goodput", "nan"]], [[9, "none", "nan"]], [[]], [3], {"a": 1}):
        (here / "run" / "run.json").write_text(json.dumps({**kept, "not_finite": wrong}))
        with pytest.raises(
            TidegateError, match=r"run\.json: not_finite has .*, which is no number of the rows"
        ):
            read_record(here / "run")


def test_a_killed_run_s_journal_has_what_is_not_finite(tmp_path: Path) -> None:
    work = Work(tmp_path / "run")
    work.begin({"experiment": "mine", "parameters": {}})
    rows = [{"case": "a", "seed": 1, "never": math.nan, "none": None}]
    work.add(experiments.Run("a", 1, rows, {}))
    journal = work.folder.parent / JOURNAL
    assert json.loads(journal.read_text(), parse_constant=no_json)["rows"][0]["never"] is None
    (row,) = read_record(work.folder)["rows"]
    assert math.isnan(row["never"])
    assert row["none"] is None
    journal.unlink()
    journal.symlink_to("/dev/zero")
    with pytest.raises(TidegateError, match=r"runs\.jsonl has more than 134217728 bytes"):
        read_record(work.folder)
    work.discard()


def test_a_journal_of_a_batch_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").symlink_to("/dev/zero")
    with pytest.raises(TidegateError, match=r"runs\.jsonl: .*: has more than 134217728 bytes"):
        Journal(tmp_path, {})


def test_digests_are_of_all_that_results_depend_on(here: Path) -> None:
    kinds = {path.suffix for path in digests._sources(user_code.PACKAGE)}
    assert kinds >= {".py", ".p4", ".so", ".cdf", ".trace"}
    file = written(here, PLAN + ENDS)
    before = digests.of_file(file)
    file.write_text(file.read_text() + "# Changed.\n")
    digests.of_file.cache_clear()
    assert digests.of_file(file) != before


def test_digests_do_not_depend_on_what_this_process_has_imported(here: Path) -> None:
    """A worker compares them before it has made a plan, the parent after that."""

    def digest() -> str:
        digests.of_file.cache_clear()
        return digests.of_experiment(name)["experiment"]

    late = ("sub/a.py", "sub/b.py", "sub/c.py", "packed/__init__.py", "packed/d.py", "dynamic/e.py")
    for file in late:
        (here / file).parent.mkdir(exist_ok=True)
        written(here, "X = 1\n", file)
    written(here, "from . import b\nfrom .c import X\n", "sub/a.py")
    own = PLAN + ENDS.replace("    return Plan", "    import sub.a\n    return Plan")
    written(
        here,
        own.replace("    return {", "    from packed import d\n    return {")
        + "def never():\n    importlib.import_module('dynamic.e')\n",
    )
    name = f"{here}/my.py:mine"
    before = digest()
    experiments.find(name).planned({"duration_ms": 100})
    assert "sub.a" in sys.modules
    assert digest() == before
    for file in late:
        written(here, (here / file).read_text() + "X = 2\n", file)
        assert digest() != before, file
        before = digest()
    written(here, "X = 3\n", "sub/other.py")
    assert digest() == before


@pytest.mark.parametrize("changed", ["plans.py", "prog.p4", "sub/deep.py"])
def test_files_beside_an_experiment_s_belong_to_it(here: Path, changed: str) -> None:
    """What it imports, the program that its network has, and a package below it."""

    def stop(status: experiments.Status) -> None:
        if status.finished:
            raise KeyboardInterrupt

    (here / "sub").mkdir()
    written(here, PLAN, "plans.py")
    written(here / "sub", "HERE = 1\n", "deep.py")
    written(here, "// Nothing.\n", "prog.p4")
    written(here, f"from plans import *\nfrom sub.deep import HERE\n{ENDS}")
    name = f"{here}/my.py:mine"
    with pytest.raises(KeyboardInterrupt):
        experiments.run(name, {}, seeds=[1, 2], out=here / "run", watch=stop)
    for file, said in (("other.txt", None), (changed, "the experiment's files have changed since")):
        with (here / file).open("a") as more:
            more.write("\n")
        digests.of_file.cache_clear()
        work = digests.of_experiment(name)["experiment"]
        record = json.loads((here / "run" / "run.json").read_text())
        assert (work == record["files"]["experiment"]) == (said is None)
    with pytest.raises(TidegateError, match="the experiment's files have changed since"):
        experiments.run(name, {}, seeds=[1, 2], out=here / "run", resume=True)


def test_the_command_that_a_report_says_runs_the_same(here: Path, tidegate: Run) -> None:
    written(here, PLAN + ENDS)
    for words in (
        ["run", "./my.py:mine", "--set", "duration_ms=50"],
        ["sweep", "./my.py:mine", "--over", "duration_ms=50,60"],
    ):
        first = json.loads(tidegate(*words, "--json").out)
        again = tidegate(*shlex.split(page.command(first))[1:], "--json")
        assert again.code == 0, again.err
        assert json.loads(again.out)["rows"] == first["rows"]


def test_mistakes_in_processes_of_their_own_have_a_place_too(here: Path) -> None:
    """Runs that are side by side are in other processes, from which no traceback comes."""
    text = PLAN.replace('"goodput_mbps"', '"good"') + ENDS
    written(
        here,
        text.replace('[Case("one", net()', "[Case(n, net()").replace("row)]", 'row) for n in ("a", "b")]'),
    )
    command = [sys.executable, "-m", "tidegate", "run", "my.py:mine", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["error"]["place"] == "my.py:14"


@pytest.mark.parametrize("name", ["nothing.py", "./nothing:x", "./"])
def test_what_is_not_there(here: Path, name: str) -> None:
    with pytest.raises(TidegateError, match=r"there is no such file|is not the folder of a system"):
        files.of_reference(name)


def test_new_things_run_and_test_at_once(here: Path, tidegate: Run) -> None:
    told = tidegate("new", "experiment", "mine").out
    assert "tidegate run ./mine.py --quick" in told
    ran = tidegate("run", "./mine.py", "--quick", "--set", "duration_s=3", "--json")
    assert [claim["holds"] for claim in json.loads(ran.out)["claims"]] == [True]
    again = tidegate("new", "experiment", "mine")
    assert (again.code, "is there already" in again.err) == (1, True)
    assert "mine.py" in tidegate("new", "system", "ecn_step", "--dir", "sub", "--json").out.replace(
        "ecn_step", "mine.py"
    )
    listed = json.loads(tidegate("list", "./sub/ecn_step", "--json").out)["experiments"]
    assert [one["name"] for one in listed] == ["ecn_step.threshold"]
    assert (here / "sub/ecn_step/ecn_step.p4").exists()


@pytest.mark.slow
def test_the_test_of_a_new_experiment_passes(here: Path) -> None:
    new_experiment("queue_lengths", here)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_queue_lengths.py"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def package(site: Path, name: str, entry: str) -> None:
    """As an installed package says that it has something for others."""
    about = site / f"{name}-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(entry)


def listed(site: Path, *words: str) -> tuple[dict[str, Any], str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "tidegate", "list", *words, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=site)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout), ran.stderr


def test_a_folder_beside_the_installed_package_of_its_name_is_another_version(tmp_path: Path) -> None:
    site, own = tmp_path / "site", tmp_path / "own"
    for folder, rate in ((site, "10 Mbit/s"), (own, "20 Mbit/s")):
        version(folder, rate)
        file = folder / "step" / "experiments" / "thr.py"
        text = "from tidegate.experiments import experiment\n" + file.read_text()
        file.write_text(text.replace("def mine", '@experiment("step.thr")\ndef mine'))
    package(site, "step-system", "[tidegate.systems]\nstep = step\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    for words in (["step.thr", "./step:mine"], ["./step:mine", "step.thr"]):
        command = [sys.executable, "-P", "-m", "tidegate", "compare", *words, "--repeat", "1", "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=own)
        assert ran.returncode == 0, ran.stderr
        (row,) = [row for row in json.loads(ran.stdout)["rows"] if row["quantity"] == "delay"]
        assert [one["median"] for one in row["sides"]] == [50 if word == "step.thr" else 60 for word in words]


def test_packages_bring_experiments_and_systems_and_broken_ones_break_no_others(tmp_path: Path) -> None:
    new_system("blink", tmp_path)
    package(tmp_path, "blink-system", "[tidegate.systems]\nblink = blink\n")
    written(tmp_path, PLAN + ENDS, "lab_rates.py")
    package(tmp_path, "lab-rates", "[tidegate.experiments]\nlab.rates = lab_rates:mine\n")
    written(tmp_path, "\n1 / 0\n", "broken.py")
    package(tmp_path, "broken-one", "[tidegate.experiments]\nbroken = broken\n")
    package(tmp_path, "absent-one", "[tidegate.systems]\nabsent = not_there\n")
    package(tmp_path, "second-meter", "[tidegate.systems]\nmeter = blink\n")
    found, warned = listed(tmp_path)
    names = {one["name"] for one in found["experiments"]}
    assert {"blink.threshold", "lab.rates", "meter.rates", "aqm.phases"} <= names
    lines = warned.splitlines()
    assert len(lines) == len(found["left_out"]) == 3
    assert any(
        "the package broken-one 1.2 is left out" in line and "broken.py:2: ZeroDivisionError" in line
        for line in lines
    )
    assert any(
        "the package absent-one 1.2" in line and "there is no module not_there" in line for line in lines
    )
    assert any(
        "the package second-meter 1.2" in line and "there is a system meter already" in line for line in lines
    )
