"""`tidegate compare`: statistics against known values, what is refused, and the command."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clusters import dask
from conftest import ROOT, Run
from tidegate import TidegateError
from tidegate.compare import Side, compare, demand_alike, interval, revisions
from tidegate.compare.figure import draw
from tidegate.compare.operands import Asked, sides
from tidegate.experiments import Interrupted
from tidegate.experiments.executors import Here
from tidegate.experiments.jobs import Ended, Jobs, Tell

NOW = fcntl.LOCK_EX | fcntl.LOCK_NB


def side(name: str, shift: float = 0.0, seeds: int = 6, column: str = "rate_mbps", **parameters: Any) -> Side:
    rows = [
        {"case": case, "seed": s, column: s * 10 + shift + 0.1 * (s % 2)}
        for case in "ab"
        for s in range(seeds)
    ]
    return Side(name, "mine.x", "sim", parameters, rows)


def test_differences_are_paired_by_seed() -> None:
    """Seeds differ by 50, and the sides by 1 with each seed: the spread is large and the interval small."""
    row = compare([side("a"), side("b", 1.0)])["rows"][0]
    (first, second) = row["sides"]
    assert (row["case"], row["quantity"], row["unit"]) == ("a", "rate_mbps", "Mbit/s")
    assert (first["median"], first["least"], first["most"], first["seeds"]) == (
        pytest.approx(25.05),
        0,
        50.1,
        6,
    )
    assert second["difference"] == pytest.approx(1)
    assert second["interval"] == pytest.approx([1, 1])
    assert (second["paired"], second["differs"]) == (6, True)


def test_the_interval_covers_as_it_says() -> None:
    """Of 200 samples of 25 normal values, the interval of the median has the true one in about 95 of 100."""
    rng = np.random.default_rng(7)
    covered = 0
    for number in range(200):
        low, high = interval(list(rng.normal(3, 2, 25)), number) or (0, 0)
        covered += low <= 3 <= high
    assert 180 <= covered <= 199
    values = [1.0, 5.0, 2.0, 9.0, 4.0, 3.0]
    assert interval(values, 3) == interval(values, 3)


@pytest.mark.parametrize("seeds", [6, 7, 8])
def test_few_seeds_without_a_difference_rarely_have_a_star(seeds: int) -> None:
    """Of normal differences around 0, 3 % (6 and 8 seeds) leave 0 out; by the bootstrap alone 6 to 12 %."""
    rng = np.random.default_rng(5)
    stars = 0
    for number in range(600):
        low, high = interval(list(rng.normal(0, 1, seeds)), number) or (0, 0)
        stars += not low <= 0 <= high
    assert stars <= 0.06 * 600


def test_infinite_values_have_no_difference() -> None:
    first, second = side("a"), side("b", 1.0)
    for row in (*first.rows[:6], *second.rows[:6]):
        row["rate_mbps"] = math.inf
    second.rows[6]["rate_mbps"] = math.inf
    (row,) = compare([first, second])["rows"]
    assert (row["case"], row["sides"][0]["seeds"], row["sides"][1]["seeds"]) == ("b", 6, 5)
    assert (row["sides"][1]["difference"], row["sides"][1]["most"]) == (pytest.approx(1), pytest.approx(51.1))


def test_five_seeds_have_no_interval() -> None:
    assert interval([1.0, 1.1, 1.2, 1.3, 1.4]) is None
    assert interval([1.0, 1.1, 1.2, 1.3, 1.4, 1.5]) == (1.0, 1.5)


def of_rows(name: str, *rows: tuple[int, str | None, float]) -> Side:
    return Side(
        name,
        "mine.x",
        "sim",
        {},
        [{"case": "a", "seed": seed, "scheme": scheme, "rate_mbps": rate} for seed, scheme, rate in rows],
    )


def test_rows_are_paired_by_their_strings() -> None:
    """The other side has the same rows in another order: no difference."""
    one = of_rows("a", (1, "fifo", 10.0), (1, "codel", 90.0), (2, "codel", 91.0), (2, "fifo", 11.0))
    two = of_rows("b", (1, "codel", 90.0), (1, "fifo", 10.0), (2, "codel", 91.0), (2, "fifo", 11.0))
    rows = compare([one, two])["rows"]
    assert [(row["row"], row["label"]) for row in rows] == [(0, "fifo"), (1, "codel")]
    assert [row["sides"][1]["difference"] for row in rows] == [0, 0]
    assert [row["sides"][0]["median"] for row in rows] == [10.5, 90.5]


def test_a_string_that_all_rows_of_a_side_share_is_no_label() -> None:
    (row,) = compare([of_rows("a", (1, "fifo", 1.0)), of_rows("b", (1, "codel", 3.0))])["rows"]
    assert (row["label"], row["sides"][1]["difference"]) == ("", 2)


def test_rows_with_the_same_strings_are_paired_in_order() -> None:
    one = of_rows("a", (1, None, 1.0), (1, None, 2.0))
    two = of_rows("b", (1, None, 2.0), (1, None, 4.0))
    rows = compare([one, two])["rows"]
    assert [(row["label"], row["sides"][1]["difference"]) for row in rows] == [("", 1), ("#2", 2)]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            ((1, "fifo", 1.0), (1, "codel", 1.0), (2, "fifo", 1.0)),
            "the case a has 2 rows in one and 1 in the other (a, seed 1; b, seed 2)",
        ),
        (
            ((1, "fifo", 1.0), (1, "drr", 1.0)),
            "the case a has rows of codel in one and drr in the other (a, seed 1; b, seed 1)",
        ),
    ],
)
def test_rows_that_have_no_partner_are_refused(rows: tuple[tuple[int, str, float], ...], said: str) -> None:
    first = of_rows("a", (1, "fifo", 1.0), (1, "codel", 1.0), (2, "fifo", 1.0), (2, "codel", 1.0))
    with pytest.raises(TidegateError) as refused:
        compare([first, of_rows("b", *rows)])
    assert said in str(refused.value)


def test_few_seeds_have_no_interval() -> None:
    second = compare([side("a"), side("b", 1.0, seeds=5)])["rows"][0]["sides"][1]
    assert (second["paired"], second["interval"], second["differs"]) == (5, None, None)


def test_a_gain_is_drawn_to_the_right_of_a_negative_median() -> None:
    """The base is the absolute median; a median of 0 has no percent, and that is said."""
    rows = [
        [
            {"case": case, "seed": s, "error": base + shift}
            for case, base in (("low", -4.0), ("none", 0.0))
            for s in range(6)
        ]
        for shift in (0.0, 1.0)
    ]
    figure = draw(compare([Side(name, "mine.x", "sim", {}, rows[n]) for n, name in enumerate("ab")]))
    right = figure.axes[1]
    assert np.asarray(right.lines[0].get_xdata())[0] == 25
    assert right.get_xlabel() == "difference from a (%)\nnot drawn, as its median is 0: none"


def test_a_figure_names_the_quantities_that_it_has_no_room_for() -> None:
    rows = [{"case": "a", "seed": 1, **{f"q{n}_ms": 1.0 for n in range(12)}}]
    figure = draw(compare([Side(name, "mine.x", "sim", {}, rows) for name in "ab"]))
    assert len(figure.axes) == 12
    assert figure.get_supxlabel() == (
        "not drawn: q6_ms, q7_ms, q8_ms, q9_ms and 2 more; choose with --quantity"
    )
    few = compare([Side(name, "mine.x", "sim", {}, [{"case": "a", "seed": 1, "q_ms": 1.0}]) for name in "ab"])
    assert draw(few).get_supxlabel() == ""


def test_parameters_that_differ_are_said() -> None:
    answer = compare([side("a", flows=2, rtt=1), side("b", flows=3, rtt=1)])
    assert answer["differing"] == {"flows": [2, 3]}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (side("b", column="rate_gbps"), "rate_mbps is in Mbit/s, and rate_gbps in Gbit/s"),
        (side("b", column="delay_ms"), "a alone has rate_mbps; b alone has delay_ms"),
        (
            Side("b", "mine.y", "sim", {"k": 1}, [{"case": "c", "seed": 1, "rate_mbps": 1.0}]),
            "no case in common: a, b beside c. What differs: experiment: mine.x and mine.y; k: None and 1",
        ),
        (
            Side("b", "mine.x", "sim", {}, side("b").rows + side("b").rows),
            "the case a has 1 row in one and 2",
        ),
        (side("a", 1.0), "a is given twice"),
    ],
)
def test_what_is_not_alike_is_refused(other: Side, said: str) -> None:
    with pytest.raises(TidegateError) as refused:
        demand_alike([side("a"), other])
    assert said in str(refused.value)


def test_folders_and_an_experiment(tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["--set", "duration_s=3", "--set", "flows=1"]
    for name, control in (("a", "cubic"), ("b", "reno")):
        ran = tidegate(
            "run", "reference.dumbbell", *words, "--set", f"congestion_control={control}", "--out", name
        )
        assert ran.code == 0, ran.err
    ran = tidegate("compare", "a", "b", "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert answer["differing"] == {"congestion_control": ["cubic", "reno"]}
    assert (tmp_path / "runs/compare/compare.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "runs/compare/compare.json").read_text())["rows"] == answer["rows"]
    ran = tidegate("compare", "a", "b", "--quick", "--repeat", "5")
    assert ran.code == 2
    assert "--repeat, --quick: folders of runs are compared as they are" in " ".join(ran.err.split())
    for words, code, said in (
        (("a", "b", "--threads", "2"), 2, "--threads: folders of runs are compared as they are"),
        (("a", "b", "--experiment", "meter.rates"), 2, "--experiment: it is what revisions run (rev:HASH)"),
        (("a", "./a"), 1, "./a is given twice"),
        (("a", "b", "--quantity", "goodput_mbps", "--quantity", "goodput_mbps"), 1, "is given twice"),
        (("a", "b", "--quantity", "goodput_mbp"), 1, "did you mean 'goodput_mbps'?"),
    ):
        ran = tidegate("compare", *words)
        assert (ran.code, said in " ".join(ran.err.split())) == (code, True), ran.err
    text = tidegate("compare", "a", "b", "--out", "c").out
    assert "differs: congestion_control (a: cubic, b: reno)" in text
    assert "an interval needs six seeds or more that both have: --repeat 6" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fifo"], "a comparison needs two things"),
        (["fifo", "coddel"], "there is nothing to compare called 'coddel'; did you mean 'codel'?"),
        (["fifo", "rev:HEAD"], "rev:HEAD: say what revisions are to run with --experiment"),
        (["fifo", "no.experiment"], "there is no experiment 'no.experiment'"),
        (["fifo", "codel", "--set", "schemes=drr"], "leave --set schemes out"),
    ],
)
def test_words_that_cannot_be(tidegate: Run, words: list[str], said: str, tmp_path: Path) -> None:
    ran = tidegate(
        "compare",
        *words,
        "--quick",
        "--set",
        "scenarios=datacenter",
        "--repeat",
        "1",
        "--out",
        str(tmp_path / "c"),
    )
    assert ran.code == 1
    assert said in ran.err


def test_rows_of_no_run_are_not_compared(tmp_path: Path) -> None:
    words = [str(tmp_path / name) for name in "ab"]
    for word in words:
        Path(word).mkdir()
        record = {"experiment": "reference.dumbbell", "parameters": {}, "rows": [{"goodput_mbps": 1.0}]}
        (Path(word) / "run.json").write_text(json.dumps(record))
    with pytest.raises(TidegateError, match=r"a: its run.json has rows without a case, which have nothing"):
        sides(words, Asked())


def test_schemes_on_a_scenario(tidegate: Run, tmp_path: Path) -> None:
    words = ["--set", "scenarios=datacenter", "--repeat", "1", "--quantity", "queue_ms_mean", "--json"]
    ran = tidegate("compare", "fifo", "stamping", *words, "--out", str(tmp_path / "c"))
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)["rows"]
    fifo, stamping = row["sides"]
    assert stamping["median"] < fifo["median"] / 2


def test_a_scheme_is_not_run_for_a_run_that_it_cannot_be_compared_with(tmp_path: Path) -> None:
    row = {"case": "one", "seed": 1, "goodput_mbps": 1.0}
    record = {"experiment": "reference.dumbbell", "parameters": {}, "rows": [row], "claims": [], "seeds": [1]}
    (tmp_path / "run.json").write_text(json.dumps(record))
    asked = Asked(out=tmp_path / "out")
    with pytest.raises(
        TidegateError, match=r"is a run of reference.dumbbell, and fifo runs reference.scenarios"
    ):
        sides([str(tmp_path), "fifo"], asked)
    assert not asked.out.exists()


def test_revisions_that_cannot_be_built_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not (revisions.REPOSITORY / ".git").exists():
        pytest.skip("needs a clone of the repository")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(TidegateError, match="has no such revision"):
        revisions.demand_possible("rev:nothing-of-that-name")
    monkeypatch.setattr(revisions, "_same_rust", lambda _: False)
    git = shutil.which("git")
    monkeypatch.setattr(shutil, "which", lambda name: git if name == "git" else None)
    with pytest.raises(TidegateError, match="there is no cargo to build them"):
        revisions.demand_possible("rev:HEAD")
    monkeypatch.setattr(revisions, "REPOSITORY", tmp_path)
    with pytest.raises(TidegateError, match="is not a clone of its repository"):
        revisions.demand_possible("rev:HEAD")


def test_the_lock_of_the_cache_is_the_user_s_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with revisions._locked("use", fcntl.LOCK_EX) as first, revisions._locked("use", NOW) as second:
        assert (first, second) == (True, False)
    (lock,) = (tmp_path / "tidegate" / "revisions").iterdir()
    other = tmp_path / "other"
    other.write_text("as it was")
    lock.unlink()
    lock.symlink_to(other)
    with pytest.raises(TidegateError, match=r"use\.lock: Too many levels"), revisions._locked("use", NOW):
        pass
    assert other.read_text() == "as it was"
    lock.unlink()
    lock.touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setenv("SUDO_UID", str(os.getuid() + 2))
    if os.getuid() == 0:
        os.chown(lock, 12345, -1)
    with pytest.raises(TidegateError, match=r"use\.lock: is of user \d+"), revisions._locked("use", NOW):
        pass


@pytest.mark.slow
def test_a_revision_runs_in_a_worktree_of_its_own(
    tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is checked out: its extension is there already. It has the results of the files here."""
    if not (revisions.REPOSITORY / ".git").exists() or not revisions._same_rust("HEAD"):
        pytest.skip("needs a clone whose Rust sources are those of HEAD")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["--set", "duration_s=3", "--set", "flows=1", "--repeat", "1", "--out", str(tmp_path / "out")]
    try:
        ran = tidegate(
            "compare",
            "reference.dumbbell",
            "rev:HEAD",
            "--experiment",
            "reference.dumbbell",
            *words,
            "--json",
        )
        assert ran.code == 0, ran.err
        assert "the extension is copied" in ran.err
        rows = json.loads(ran.out)["rows"]
        assert rows
        assert all(row["sides"][1]["difference"] == 0 for row in rows)
        (tree,) = revisions.kept()
        assert f"kept without --revisions: {tree}" in tidegate("clean").out
        assert str(tree) in revisions._git("worktree", "list")
    finally:
        cleaned = tidegate("clean", "--revisions")
    assert f"removed: {tree}" in cleaned.out
    assert revisions.kept() == []
    assert str(tree) not in revisions._git("worktree", "list")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the tools of this one, and a package whose extension is a file of text."""
    place = tmp_path / "clone"
    package = place / "python" / "tidegate"
    package.mkdir(parents=True)
    (place / "crates").mkdir()
    shutil.copytree(ROOT / "tools", place / "tools")
    (place / ".gitignore").write_text("*.so\n_core.sources\n")
    (package / "__init__.py").touch()
    for name in ("Cargo.toml", "Cargo.lock", "crates/a.rs"):
        (place / name).write_text("before\n")
    for name, value in (
        ("XDG_CACHE_HOME", str(tmp_path / "cache")),
        *((f"GIT_{who}_{what}", "x") for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(revisions, "REPOSITORY", place)
    monkeypatch.setattr(revisions, "PACKAGE", package)
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    return place


def committed(clone: Path) -> str:
    for words in (["add", "--all"], ["commit", "--quiet", "--message", "x"]):
        subprocess.run(["git", "-C", str(clone), *words], check=True)
    return revisions.commit_of("rev:HEAD")


def built(clone: Path, command: str) -> None:
    """Build the extension by a command, as the set-up does."""
    subprocess.run(
        ["tools/build_extension.sh", "sh", "-c", f"{{ {command}; }} >python/tidegate/_core.abi3.so"],
        cwd=clone,
        check=True,
    )


def test_an_extension_is_of_the_sources_that_it_was_built_from(clone: Path) -> None:
    """Not of those that are in the work tree now."""
    first = committed(clone)
    assert not revisions._same_rust(first)
    built(clone, "cat crates/a.rs")
    assert revisions._same_rust(first)
    (clone / "crates" / "a.rs").write_text("after\n")
    second = committed(clone)
    assert (revisions._same_rust(first), revisions._same_rust(second)) == (True, False)
    # One that git does not know yet belongs to the sources; what is no source does not.
    (clone / "crates" / "b.rs").touch()
    built(clone, "cat crates/a.rs")
    assert not revisions._same_rust(second)
    (clone / "crates" / "b.rs").unlink()
    (clone / "other.py").touch()
    built(clone, "cat crates/a.rs")
    assert revisions._same_rust(second)
    (clone / "python" / "tidegate" / revisions.EXTENSION).write_text("another\n")
    assert not revisions._same_rust(second)
    built(clone, "cat crates/a.rs; echo meanwhile >>crates/a.rs")
    assert not revisions._same_rust(second)


def test_a_revision_is_built_when_its_extension_is_of_its_sources(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = committed(clone)
    built(clone, "cat crates/a.rs")
    told: list[str] = []
    tree = revisions._build("rev:HEAD", told.append)
    assert revisions._is_built(first)
    assert "the extension is copied" in told[0]
    extension = tree / "python" / "tidegate" / revisions.EXTENSION
    assert extension.read_text() == "before\n"
    # As earlier versions have left it: with the extension of another revision, and nothing that says so.
    (extension.parent / revisions.NOTE).unlink()
    extension.write_text("other\n")
    revisions._build("rev:HEAD", told.append)
    assert extension.read_text() == "before\n"
    (clone / "crates" / "a.rs").write_text("after\n")
    second = committed(clone)

    def cargo(word: str, tree: Path) -> Path:
        (tree / "lib").write_text((tree / "crates" / "a.rs").read_text())
        return tree / "lib"

    monkeypatch.setattr(revisions, "_cargo", cargo)
    tree = revisions._build("rev:HEAD", told.append)
    assert (tree / "python" / "tidegate" / revisions.EXTENSION).read_text() == "after\n"
    assert "the extension here is not known to be of its Rust sources" in told[-2]
    assert revisions._is_built(second)


RECORDING = """
import ctypes, json, pathlib, sys

signal = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(signal), 0, 0, 0)
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(parents=True)
row = {"case": "a", "seed": 1, "signal": signal.value}
about = {"experiment": "mine.x", "parameters": {}, "rows": [row], "warnings": ["a queue was full"]}
(out / "run.json").write_text(json.dumps(about))
"""


def test_a_revision_is_run_wherever_one_is_and_what_it_warns_of_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder may have a Tidegate too. If this process is killed, it goes on no longer."""
    for place, text in (("tree/python", RECORDING), ("here", "raise SystemExit('of the current folder')")):
        package = tmp_path / place / "tidegate"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(text)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(revisions, "_build", lambda word, tell: tmp_path / "tree")
    monkeypatch.setattr(revisions, "demand_possible", lambda word: None)
    told: list[str] = []
    asked = Asked(seeds=(1,), out=tmp_path / "out", experiment="mine.x", tell=told.append)
    (found,) = sides(["rev:old"], asked)
    assert found.rows[0]["signal"] == signal.SIGKILL
    assert told == ["warning: rev:old: a queue was full"]


def test_the_revisions_that_were_used_last_are_kept(
    tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = tmp_path / "tidegate" / "revisions"
    names = [f"{number:040x}" for number in range(6)]
    for age, name in enumerate(["target", *names]):
        (cache / name / "python" / "tidegate").mkdir(parents=True)
        (cache / name / "python" / "tidegate" / revisions.EXTENSION).touch()
        os.utime(cache / name, (1000 - age, 1000 - age))
    monkeypatch.setattr(revisions, "commit_of", lambda _: names[5])
    ran: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        # Meanwhile nobody removes what it needs.
        refused = tidegate("clean", "--revisions")
        assert refused.code == 1
        assert "a comparison is using built revisions; end it first" in refused.err
        return subprocess.CompletedProcess(command, 0, "", "")

    with monkeypatch.context() as patched:
        patched.setattr(revisions, "_is_built", lambda _: True)
        patched.setattr(revisions.subprocess, "run", run)
        patched.setattr(revisions, "REPOSITORY", tmp_path)
        revisions.run("rev:x", "reference.dumbbell", [], [1], True, tmp_path, lambda _: None)
    assert len(ran) == 1
    # The oldest of them has been used, and the two that now are the oldest are gone.
    assert [path.name for path in revisions.kept()] == [names[5], *names[:3], "target"]


class Told:
    """Runs here; notes them, and Ctrl-C comes after so many."""

    def __init__(self, most: int | None = None) -> None:
        self.runs: list[str] = []
        self._most = most

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        def heard(done: float, under_way: list[int], runs: list[Any]) -> None:
            self.runs += [f"{one.case} {one.seed}" for one in runs]
            if len(self.runs) == self._most:
                raise KeyboardInterrupt

        Here().run(jobs, heard, ended)


def test_a_comparison_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    words = ["reference.dumbbell"]
    settings = ("flows=1,2", "duration_s=3")

    def asked(executor: Told, out: str = "a", **more: Any) -> Asked:
        given = {"settings": settings, "seeds": (1, 2), "quick": True, **more}
        return Asked(out=tmp_path / out, executor=executor, **given)  # type: ignore[arg-type]

    uninterrupted, first, rest = Told(), Told(3), Told()
    (whole,) = sides(words, asked(uninterrupted, "b"))
    with pytest.raises(Interrupted, match=r"interrupted with 3 of 4 runs done; .* with --resume goes on"):
        sides(words, asked(first))
    assert sides(words, asked(rest, resume=True)) == [whole]
    assert first.runs + rest.runs == uninterrupted.runs
    # What is done is not run again, unless it is of something else.
    for again, runs in (
        (asked(none := Told(), resume=True), 0),
        (asked(other := Told(), resume=True, seeds=(1,)), 2),
    ):
        sides(words, again)
        assert len((none if runs == 0 else other).runs) == runs
    with pytest.raises(TidegateError, match=r"rev:x: a cluster's workers have the files of now"):
        sides(["rev:x"], asked(Told(), experiment="reference.dumbbell"))


OF_TWO_VERSIONS = """
from matplotlib.figure import Figure
from tidegate.experiments import Case, Plan, experiment
from tidegate.network import Network

def net():
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    return net

@experiment("same.e")
def e(bound: float = 1.0):
    return Plan([Case("one", net(), "10 ms", lambda result: {"rate_mbps": RATE})], lambda rows: [], lambda runs: Figure())
"""


def test_two_versions_of_an_experiment_have_a_folder_each(tmp_path: Path) -> None:
    words = []
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        file = tmp_path / version / "my.py"
        file.write_text(OF_TWO_VERSIONS.replace("RATE", version))
        words.append(f"{file}:e")
    for resume in (False, True):
        found = sides(words, Asked(out=tmp_path / "out", seeds=(1,), resume=resume))
        assert [side.rows[0]["rate_mbps"] for side in found] == [1, 2]
        there = sorted(one.name for one in (tmp_path / "out").iterdir())
        assert there == ["same.e", "same.e-2"]


@pytest.mark.slow
def test_a_comparison_on_a_cluster(tidegate: Run, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    words = ("compare", "fifo", "codel", "--set", "scenarios=wifi", "--repeat", "1", "--json")
    here = json.loads(tidegate(*words, "--out", str(tmp_path / "here")).out)
    with dask(tmp_path, 1) as (address, _):
        ran = tidegate(*words, "--out", str(tmp_path / "there"), "--cluster", address)
    there = json.loads(ran.out)
    assert {**there, "out": ""} == {**here, "out": ""}


@pytest.mark.parametrize(
    ("words", "why"), [(["meter.rates"], "two things or more"), (["meter.rates"] * 2, "given twice")]
)
def test_nothing_runs_for_a_comparison_that_cannot_be(
    words: list[str], why: str, tidegate: Run, tmp_path: Path
) -> None:
    ran = tidegate("compare", *words, "--quick", "--out", str(tmp_path / "out"))
    assert (ran.code, why in ran.err) == (1, True)
    assert not list(tmp_path.iterdir())


def test_a_comparison_replaces_no_page_but_one_of_a_comparison(tidegate: Run, tmp_path: Path) -> None:
    """It is refused before anything runs."""
    for name in ("run/run.json", "study/report.html", "figure/compare.png", "file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    for name, why in (
        ("run", "it holds a run"),
        ("study", "its report.html is not of a comparison"),
        ("figure", "its compare.png is not of a comparison"),
        ("file", "it is not a folder"),
    ):
        ran = tidegate("compare", "fifo", "codel", "--out", str(tmp_path / name))
        said = f"{tmp_path / name}: a comparison cannot be written there: {why}"
        assert (ran.code, ran.err.startswith(said)) == (1, True), ran.err
    assert len(list(tmp_path.rglob("*"))) == 7
