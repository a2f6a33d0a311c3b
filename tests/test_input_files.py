"""Files of the user's as parameters of experiments: what is refused, and that a run is of their content."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError, experiments
from tidegate.compare import demand_alike, sides
from tidegate.compare.alike import differing
from tidegate.compare.operands import Asked
from tidegate.experiments import File, InputFile, find, replot, sweep, tune, with_settings
from tidegate.experiments.folder import read_record, resumed
from tidegate.experiments.input_file import recorded
from tidegate.experiments.landscape import Landscape
from tidegate.report.page import command, join

NAME = "reference.scenarios"
ONE = ["scenarios=trace", "schemes=fifo"]


def steady(each_ms: int, length_ms: int = 1000) -> str:
    """A packet each so many milliseconds."""
    return "".join(f"{at}\n" for at in range(each_ms, length_ms + 1, each_ms))


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`my.trace` of 6 Mbit/s, in the current folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my.trace"
    file.write_text(steady(2))
    return file


def run(out: str, *settings: str, **how: Any) -> dict[str, Any]:
    given = with_settings(find(NAME), [*ONE, *settings])
    return experiments.run(NAME, given, seeds=[1], out=Path(out), **how)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "it: No such file or directory; correct the path"),
        ("", "it has no time above 0 ms"),
        ("1\n2\nthree\n", "it:3: 'three' is not a time in whole milliseconds"),
        ("1\n2\n1\n", "it:3: 1 ms comes after 2 ms"),
        ("1\n20000\n", "it has no packet from 5 s to 15 s"),
        ("6000\n86000000\n", "it has less than 1 bit/s on average"),
        ("1\n" * (8 << 20) + "2\n", "it has more than 16777216 bytes; give a shorter file"),
    ],
)
def test_a_file_that_is_none_is_refused_where_it_is_given(
    content: str | None, said: str, trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        Path("it").write_text(content)
    with pytest.raises(TidegateError) as refused:
        with_settings(find(NAME), ["trace=it"])
    assert str(refused.value).startswith(f"--set trace: {said}")
    with pytest.raises(TidegateError) as refused:
        experiments.run(NAME, {"trace": Path("it")}, seeds=[1], out=Path("out"))
    assert str(refused.value).startswith(f"trace: {said}")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".", ". is not a file; give the path of one"),
        ("pipe", "pipe is not a file; give the path of one"),
        ("/dev/zero", "/dev/zero is not a file"),
        ("", "there is no path"),
        ("a\0b", "'a\\x00b' is no path"),
        ("secret", "secret: Permission denied"),
    ],
)
def test_what_is_no_file(path: str, said: str, trace: Path) -> None:
    os.mkfifo("pipe")
    Path("secret").write_text(steady(2))
    Path("secret").chmod(0)
    if path == "secret" and os.geteuid() == 0:
        pytest.skip("this user may read all files")
    with pytest.raises(TidegateError) as refused:
        with_settings(find(NAME), [f"trace={path}"])
    assert str(refused.value).startswith(f"--set trace: {said}")


def test_the_command_says_it_in_one_line(trace: Path) -> None:
    trace.write_text("1\nx\n")
    words = [sys.executable, "-m", "tidegate.cli", "run", NAME, "--set", "trace=./my.trace"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    (line,) = done.stderr.splitlines()
    assert "--set trace: ./my.trace:2: 'x' is not a time in whole milliseconds" in line


def test_other_values(trace: Path) -> None:
    one = find(NAME)
    for wrong in (1, True, b"my.trace"):
        with pytest.raises(
            TidegateError, match=r"reference\.scenarios: trace is .*; give the path of a file"
        ):
            one.check({**one.parameters(), "trace": wrong})
    with pytest.raises(TidegateError, match="the scenario trace needs a file: --set trace=FILE"):
        one.planned({**one.parameters(), "scenarios": ("trace",)})
    with pytest.raises(TidegateError, match=r"--range trace=my\.trace: trace is a file; --set one, or"):
        tune.Range.parse("trace=my.trace", one)
    assert one.about()["trace"] == {"type": "file: trace in Mahimahi's format", "unit": None}
    named = [case.name for case in one.planned(with_settings(one, ["schemes=fifo", "trace=my.trace"])).cases]
    assert named == [f"{name}-fifo" for name in ("access", "wan", "datacenter", "satellite", "wifi", "trace")]


def test_a_run_is_of_the_content(trace: Path) -> None:
    """The rate is the file's; the record names it; the figure and the report need it no more."""
    record = run("a", "trace=my.trace")
    (row,) = record["rows"]
    assert row["scenario"] == "trace"
    assert 0.9 * 6 < row["goodput_mbps"] < 6
    assert 0.9 < row["of_capacity"] <= 1
    kept = json.loads(Path("a/run.json").read_text())["parameters"]["trace"]
    assert kept == {"path": "my.trace", "sha256": InputFile.read(trace).sha256}
    figure = Path("a/figure.png").read_bytes()
    trace.unlink()
    Path("a/figure.png").unlink()
    replot(Path("a"))
    assert Path("a/figure.png").read_bytes() == figure
    assert command(read_record(Path("a"))) == (
        "tidegate run reference.scenarios --set scenarios=trace --set schemes=fifo --set trace=my.trace"
    )
    assert f"my.trace (SHA-256 {kept['sha256']})" in Path("a/report.html").read_text()


def test_two_contents_of_one_name_are_two_runs(trace: Path) -> None:
    """`compare` and `--resume` tell them apart, and take one content under two names as one."""
    run("a", "trace=my.trace")
    trace.rename("other.trace")
    run("b", "trace=other.trace")
    Path("my.trace").write_text(steady(3))
    run("c", "trace=my.trace")
    a, b, c = (sides([name], Asked())[0] for name in "abc")
    demand_alike([a, b, c])
    assert "trace" not in differing([a, b])
    assert {"path": "my.trace", "sha256": InputFile.read("my.trace").sha256} in differing([a, c])["trace"]
    answers = {name: read_record(Path(name)) for name in "abc"}
    cases = ["trace-fifo"]
    assert len(resumed(Path("a"), answers["b"], cases)[0]) == 1
    with pytest.raises(
        TidegateError, match=r"a is a run with trace=my\.trace \(SHA-256 \w+\) and not trace=my\.trace \("
    ):
        resumed(Path("a"), answers["c"], cases)


def test_a_comparison_goes_on_with_the_same_content_only(trace: Path) -> None:
    def compared(name: str) -> list[float]:
        found = sides(
            ["fifo"],
            Asked(settings=["scenarios=trace", f"trace={name}"], seeds=[1], out=Path("out"), resume=True),
        )
        return [row["goodput_mbps"] for row in found[0].rows]

    first, stamp = compared("my.trace"), Path("out/reference.scenarios/run.json").stat().st_mtime_ns
    trace.rename("other.trace")
    assert compared("other.trace") == first
    assert Path("out/reference.scenarios/run.json").stat().st_mtime_ns == stamp
    Path("other.trace").write_text(steady(3))
    assert compared("other.trace") != first


def test_a_sweep_over_files(trace: Path) -> None:
    """Values are their names with digests, also where two have one name."""
    Path("b").mkdir()
    Path("b/my.trace").write_text(steady(3))
    given = with_settings(find(NAME), ONE)
    over = sweep.read_over(find(NAME), ["trace=my.trace,b/my.trace"])
    record = sweep.run(
        NAME, given, over, landscape=Landscape(("trace",), column="goodput_mbps"), seeds=[1], out=Path("out")
    )
    values = [str(InputFile.read(path)) for path in ("my.trace", "b/my.trace")]
    assert [row["trace"] for row in record["rows"]] == values
    assert [one["path"] for one in record["parameters"]["over"]["trace"]] == ["my.trace", "b/my.trace"]
    assert "--over trace=my.trace,b/my.trace" in command(read_record(Path("out")))
    with pytest.raises(TidegateError, match="a value is given twice"):
        sweep.read_over(find(NAME), ["trace=my.trace,./my.trace"])


def test_the_content_goes_with_the_parameters(trace: Path) -> None:
    """To a process that has not the file; one that was changed in the meantime is not taken for the one of a record."""
    given = find(NAME).with_files({"trace": "my.trace"})["trace"]
    sent = pickle.dumps(given)
    assert len(sent) < len(given.data)
    trace.write_text("nothing")
    assert (pickle.loads(sent), pickle.loads(sent).data) == (given, given.data)
    again = find(NAME).recalled({"trace": recorded(given)})["trace"]
    assert again == given
    with pytest.raises(TidegateError, match=r"my\.trace has another content than the one of SHA-256"):
        _ = again.data


def test_a_file_of_a_users_experiment(trace: Path) -> None:
    Path("mine.py").write_text(
        """
from typing import Annotated
from tidegate.experiments import Case, File, InputFile, Plan
from tidegate.network import Network

def check(data, name):
    pass

def links(rates: Annotated[InputFile | None, File("list of rates", check, most=100)] = None) -> Plan:
    "One link."
    raise SystemExit if rates is None else ValueError(rates.data)
"""
    )
    one = find("./mine.py:links")
    Path("rates").write_text("1 Mbit/s")
    with pytest.raises(TidegateError, match="ValueError: b'1 Mbit/s'"):
        one.planned(with_settings(one, ["rates=rates"]))
    with pytest.raises(TidegateError, match=r"rates: my\.trace has more than 100 bytes"):
        with_settings(one, ["rates=my.trace"])
    assert File("x").read("rates").data == b"1 Mbit/s"
    Path("other.py").write_text("def links(rates: str = None):\n    pass\n")
    with pytest.raises(TidegateError, match="the default of rates is None"):
        find("./other.py:links")


def test_reports_of_several_runs_name_the_file(trace: Path) -> None:
    run("a", "trace=my.trace")
    join([Path("a")], Path("report.html"))
    assert "my.trace (SHA-256 " in Path("report.html").read_text()
