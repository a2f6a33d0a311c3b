"""Schemes of the user's beside Tidegate's own: of files, of a system's folder, of installed packages; and what their mistakes are told as."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusters import dask
from conftest import Run
from own import ENDS, PLAN, written
from own import here as here
from test_own_experiments import package
from tidegate import TidegateError, experiments
from tidegate.cli.completion import candidates
from tidegate.compare import Asked, sides
from tidegate.experiments import find, replot, sweep, tune, with_settings
from tidegate.experiments.folder import read_record
from tidegate.experiments.landscape import Landscape
from tidegate.report.page import command
from tidegate.scenarios import own
from tidegate.templates import new_system

NAME = "reference.scenarios"
ONE = ("--set", "scenarios=datacenter")
SCHEMES = """
from tidegate.scenarios import Scheme

red = Scheme("red", "FIFO under another name")
queue = Scheme("queue", "CoDel under another name", aqm="codel")
taken = Scheme("fifo", "the name of another")
number = 5

def broken(place):
    return 1 / 0

def nothing(net, scenario):
    pass

fails = Scheme("fails", "", manage=broken)
absent = Scheme("absent", "", left=nothing)
elsewhere = Scheme("elsewhere", "", left=lambda net, scenario: net.router("middle"))
few = Scheme("few", "", left=lambda net: net.router("left"))
flow = Scheme("flow", "", flow=lambda scenario: {"congestion": "reno"})
"""


@pytest.fixture(autouse=True)
def without_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the path of modules: folders of other tests' systems, in which `step` is another one."""
    monkeypatch.setattr(sys, "path", [one for one in sys.path if not (Path(one) / "step").is_dir()])


@pytest.fixture
def red(here: Path) -> Path:
    return written(here, SCHEMES, "red.py")


def run(out: str, schemes: str, **how: Any) -> dict[str, Any]:
    given = with_settings(find(NAME), [ONE[1], f"schemes={schemes}"])
    return experiments.run(NAME, given, seeds=[1], out=Path(out), **how)


def measured(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what names the scheme."""
    return [{key: value for key, value in row.items() if key not in ("case", "scheme")} for row in rows]


def test_a_scheme_of_a_file_is_what_it_says(red: Path, tidegate: Run) -> None:
    ran = tidegate("run", NAME, *ONE, "--set", "schemes=fifo,./red.py:red", "--json", "--out", "out")
    assert ran.code == 0, ran.err
    first, second = ran.json["rows"]
    assert (second["case"], second["scheme"]) == ("datacenter-red", "red")
    assert measured([first]) == measured([second])
    kept = read_record(Path("out"))
    assert kept["rows"] == ran.json["rows"]
    (_, said) = kept["parameters"]["schemes"]
    assert (said["name"], said["source"]) == ("red", f"{red}:red")


def test_it_is_compared_with_others(red: Path, tidegate: Run) -> None:
    ran = tidegate("compare", "./red.py:red", "fifo", "red.py:queue", *ONE, "--repeat", 2, "--json")
    assert ran.code == 0, ran.err
    assert [one["name"] for one in ran.json["rows"][0]["sides"]] == ["./red.py:red", "fifo", "red.py:queue"]
    assert {row["sides"][1]["difference"] for row in ran.json["rows"]} == {0}
    # A comparison that is done is not run again, and one of another file is.
    before = Path("runs/compare/reference.scenarios/run.json").stat().st_ino
    words = ["compare", "./red.py:red", "fifo", "red.py:queue", *ONE, "--repeat", 2, "--resume"]
    assert tidegate(*words).code == 0
    assert Path("runs/compare/reference.scenarios/run.json").stat().st_ino == before


def test_a_new_system_is_compared_at_once(here: Path, tidegate: Run) -> None:
    new_system("step", here)
    ran = tidegate("compare", "./step:scheme", "fifo", *ONE, "--repeat", 1, "--json", process=True)
    assert ran.code == 0, ran.err
    assert [one["name"] for one in ran.json["rows"][0]["sides"]] == ["./step:scheme", "fifo"]
    (case,) = {row["case"] for row in read_record(Path("runs/compare/reference.scenarios"))["rows"]} - {
        "datacenter-fifo"
    }
    assert case == "datacenter-step"
    # Its experiments are there as before.
    assert tidegate("compare", "fifo", "./step:threshold", *ONE, process=True).code == 1


def test_two_versions_of_one_scheme_stand_beside_each_other(here: Path) -> None:
    for number, wait in ((1, "1 ms"), (2, "50 us")):
        setup = new_system("step", here / f"v{number}") / "setup.py"
        setup.write_text(setup.read_text().replace('= "1 ms"', f'= "{wait}"'))
    words = ["v1/step:scheme", "v2/step:scheme"]
    late, soon = sides(words, Asked(settings=[ONE[1]], seeds=[1], out=here / "out", processes=2))
    assert [late.name, soon.name] == words
    assert soon.rows[0]["queue_ms_mean"] < 0.7 * late.rows[0]["queue_ms_mean"]
    rows = read_record(here / "out" / NAME)["rows"]
    assert [row["scheme"] for row in rows] == ["step", "step-2"]


def test_the_run_is_of_the_scheme_s_files(red: Path, tidegate: Run) -> None:
    """`--resume` and what has been loaded already do not go on with others; figure, report and plan need none."""
    run("out", "fifo,./red.py:red")
    assert run("out", "fifo,./red.py:red", resume=True).complete_before
    words = ("run", NAME, *ONE, "--set", "schemes=fifo,./red.py:red", "--out", "out", "--resume")
    red.write_text(SCHEMES + "# changed\n")
    other = tidegate(*words, process=True)
    assert other.code == 1
    assert "out is a run with schemes=fifo," in other.err
    red.unlink()
    Path("out/figure.png").unlink()
    replot(Path("out"))
    assert Path("out/figure.png").exists()
    record = read_record(Path("out"))
    assert command(record) == (
        f"tidegate run reference.scenarios --set scenarios=datacenter --set schemes=fifo,{red}:red"
    )
    assert f"{red}:red (files " in Path("out/report.html").read_text()


def test_sweeps_and_studies_vary_it(red: Path) -> None:
    one = find(NAME)
    over = sweep.read_over(one, ["schemes=fifo,./red.py:queue"])
    given = with_settings(one, [ONE[1]])
    answer = sweep.run(NAME, given, over, landscape=Landscape(("schemes",)), seeds=[1], out=Path("sweep"))
    assert [row["schemes"] for row in answer["rows"]] == ["fifo", "queue"]
    choices = tune.Range.parse("schemes=fifo,./red.py:queue", one).choices
    assert choices == ("fifo", "./red.py:queue")
    with pytest.raises(TidegateError, match=r"red\.py has no scheme 'quew'; did you mean 'queue'"):
        tune.Range.parse("schemes=fifo,./red.py:quew", one)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("./none.py:red", "schemes: none.py: there is no such file"),
        ("./red.py:rde", "schemes: red.py has no scheme 'rde'; did you mean 'red'? known: red, queue, taken"),
        (
            "./red.py:number",
            "schemes: ./red.py:number is of type int; give a tidegate.scenarios.Scheme",
        ),
        (
            "./red.py:taken",
            "schemes: ./red.py:taken is called 'fifo', and there is a scheme of that name already; give it another name",
        ),
        ("./red.py", "schemes: ./red.py has 8 schemes; give one of ./red.py:red, ./red.py:queue"),
        ("./bad.py:one", "schemes: bad.py:2: a scheme is called 'a/b'; give a name of letters"),
        ("./raises.py:one", "schemes: raises.py:1: ZeroDivisionError: division by zero"),
        ("./empty.py", "schemes: ./empty.py has no scheme; give a tidegate.scenarios.Scheme"),
        ("./folder:one", "schemes: folder is not the folder of a system: it has no folder `experiments`"),
        ("./system:one", "schemes: system has no setup.py; give a file of Python"),
        ("reed", "reference.scenarios: schemes is 'reed'; "),
        ("./red.py:fails", "red.py:10: ZeroDivisionError: division by zero"),
        ("./red.py:absent", "red.py:12: nothing returns None; return the node that it makes, named 'left'"),
        ("./red.py:elsewhere", "red.py:17: <lambda> returns <router middle>; return the node"),
        ("./red.py:few", "red.py:18: <lambda> is called with 2 arguments (Network, Scenario): too many"),
        ("./red.py:flow", "red.py:19: <lambda> returns a keyword 'congestion'; did you mean 'congestion_c"),
    ],
)
def test_mistakes_are_one_message(red: Path, tidegate: Run, word: str, said: str) -> None:
    written(red.parent, "from tidegate.scenarios import Scheme\none = Scheme('a/b', '')\n", "bad.py")
    written(red.parent, "1 / 0\n", "raises.py")
    written(red.parent, "x = 1\n", "empty.py")
    Path("folder").mkdir()
    Path("system/experiments").mkdir(parents=True)
    ran = tidegate("run", NAME, *ONE, "--quick", "--set", f"schemes={word}")
    assert ran.code == 1
    (line,) = ran.err.splitlines()
    assert line.startswith(said)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("./none.py:red", "./none.py:red: there is no such folder or file; give a run's folder"),
        ("./red.py:rde", "red.py has no experiment 'rde'; it has none; its schemes are ./red.py:red, "),
        ("./red.py:taken", "./red.py:taken is called 'fifo', and there is a scheme of that name already"),
        ("./red.py:fails", "red.py:10: ZeroDivisionError: division by zero"),
    ],
)
def test_compare_says_them_too(red: Path, tidegate: Run, word: str, said: str) -> None:
    ran = tidegate("compare", "fifo", word, *ONE, "--repeat", 1)
    assert (ran.code, ran.err.splitlines()[-1].startswith(said)) == (1, True), ran.err


def test_a_file_may_have_experiments_too(here: Path, tidegate: Run) -> None:
    written(here, PLAN + ENDS + SCHEMES)
    ran = tidegate("compare", "./my.py:mine", "./my.py:mine", "--repeat", 1)
    assert "given twice" in ran.err
    assert own.is_scheme("./my.py:red")
    assert not own.is_scheme("./my.py:mine")
    assert tidegate("run", "./my.py:mine", "--json").json["experiment"] == "my.mine"


def test_tab_completes_it(red: Path) -> None:
    assert {"./red.py:red\tA scheme", "./red.py:flow\tA scheme"} <= set(candidates(["compare", "./red.py:"]))
    assert candidates(["compare", "./red.py:red", "--set", "scen"]) == ["scenarios="]


def test_files_that_have_changed_elsewhere_are_not_run(red: Path) -> None:
    scheme = own.given("./red.py:red")
    assert isinstance(scheme, own.Own)
    other = own.Own(scheme.name, scheme.source, "0123456789ab")
    with pytest.raises(
        TidegateError, match=r"the files of the scheme .*red\.py:red are \w+ here instead of 01"
    ):
        own.find(other)


def test_workers_of_a_cluster_load_it(red: Path, tmp_path: Path) -> None:
    """They are started in another folder."""
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    place = tmp_path / "workers"
    place.mkdir()
    words = [sys.executable, "-m", "tidegate", "run", NAME, *ONE, "--set", "schemes=fifo,./red.py:red"]
    with dask(place, workers=1) as (address, _):
        done = subprocess.run(
            [*words, "--out", "there", "--cluster", address], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert read_record(Path("there"))["rows"] == run("here", "fifo,./red.py:red")["rows"]


def of_packages(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    whole = [sys.executable, "-m", "tidegate", *words]
    return subprocess.run(whole, capture_output=True, text=True, env=environment, check=False, cwd=site)


def test_packages_bring_schemes(tmp_path: Path) -> None:
    written(tmp_path, SCHEMES, "lab_red.py")
    entries = [
        "red-1 = lab_red:queue",
        "codel = lab_red:queue",
        "gone = lab_red:gone",
        "five = lab_red:number",
    ]
    package(tmp_path, "lab-red", "\n".join(["[tidegate.schemes]", *entries, ""]))
    ran = of_packages(tmp_path, "compare", "codel", "red-1", *ONE, "--repeat", "1", "--json")
    assert ran.returncode == 0, ran.stderr
    assert {row["sides"][1]["difference"] for row in json.loads(ran.stdout)["rows"]} == {0}
    listed = of_packages(tmp_path, "list", NAME)
    assert "separation, red-1, gone, five\n" in listed.stdout
    assert listed.stderr == (
        "warning: the package lab-red 1.2 is left out (tidegate.schemes: codel = lab_red:queue): "
        "there is a scheme codel already\n"
    )
    for name, said in (
        ("gone", "the package lab-red 1.2 (tidegate.schemes: gone = lab_red:gone): "),
        ("five", "five is of type int; give a tidegate.scenarios.Scheme"),
    ):
        ran = of_packages(tmp_path, "compare", "fifo", name, *ONE, "--repeat", "1")
        assert (ran.returncode, said in ran.stderr, "Traceback" in ran.stderr) == (1, True, False), ran.stderr
