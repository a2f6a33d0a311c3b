"""One run on several threads: the tables are those of one thread."""

import multiprocessing
import os
from pathlib import Path

import pytest

from conftest import Run
from same_results import ROUTER, digest_tables, route
from tidegate import TidegateError
from tidegate.backends import common
from tidegate.cli import carrying
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import folder, plan, running
from tidegate.experiments.executors import processes
from tidegate.experiments.jobs import Ended, Jobs
from tidegate.network import Network, Switch
from tidegate.results import TABLES, Result
from tidegate.topologies import leaf_spine


class Looks(Controller):
    """Notes how long the first queue is, and now and then shortens it."""

    period = "700 us"

    def tick(self, now: int, switch: SwitchApi) -> None:
        switch.note("waiting", switch.queue_read(0).waiting_packets)


def fabric() -> tuple[Network, list[Switch]]:
    """P4 switches under a controller that ticks, long flows and short ones, queues and flows recorded."""
    net = Network()
    switches: list[Switch] = []

    def make(net: Network, name: str) -> Switch:
        switches.append(net.switch(name, ROUTER))
        return switches[-1]

    slow = {"rate": "100 Mbit/s", "delay": "200 us", "queue": "50 packets"}
    made = leaf_spine(net, 4, 2, 3, access=slow, fabric={**slow, "rate": "200 Mbit/s"}, switch=make)
    for switch in switches:
        route(net, switch)
    hosts = made.hosts
    for i, host in enumerate(hosts):
        net.tcp(host, hosts[(i + 5) % len(hosts)], congestion_control=("cubic", "bbr", "reno")[i % 3])
        net.tcp(hosts[(i + 4) % len(hosts)], host, size="40 kB", start=f"{3 * (i % 4)} ms")
    net.record("5 ms", queues=net.links)
    net.control(Looks())
    return net, switches


def digests(result: Result) -> dict[str, str]:
    found: dict[str, str] = {}
    digest_tables(found, "fabric", [{table: getattr(result, table) for table in TABLES}])
    return found


def test_a_fabric_with_controllers_is_as_on_one_thread() -> None:
    one = fabric()[0].run("60 ms")
    assert one.notes.height > 100
    for threads in (2, 3):
        several = fabric()[0].run("60 ms", threads=threads)
        assert several.warnings == ()
        assert digests(several) == digests(one)
        assert (several.events, several.hops) == (one.events, one.hops)


def test_a_run_on_one_says_why(tmp_path: Path) -> None:
    net, _ = fabric()
    net.capture(net.links[0], net.links[0].a, tmp_path / "all.pcap")
    assert net.run("1 ms", threads=2).warnings == ("ran on 1 of 2 threads: packets are captured",)


def core(delay: str, start: str = "0 s") -> Network:
    """Fifty flows through one link of 1 Gbit/s, between links with a delay that parts are cut at."""
    net = Network()
    first, last = net.router("first"), net.router("last")
    net.link(first, last, rate="1 Gbit/s", delay="0 ms", queue="1000 packets")
    for number in range(50):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, first, rate="1 Gbit/s", delay=delay)
        net.link(last, b, rate="1 Gbit/s", delay=delay)
        net.tcp(a, b, start=start)
    return net


@pytest.mark.parametrize(("delay", "divided"), [("0.1 ms", False), ("2 ms", True)])
def test_parts_that_have_too_little_to_do_become_one(delay: str, divided: bool) -> None:
    one, two = core(delay).run("2 s"), core(delay).run("2 s", threads=2)
    why = "ran on 1 of 2 threads: too little happens in the time that a packet takes between its parts"
    assert two.warnings == (() if divided else (why,))
    assert digests(two) == digests(one)


def test_a_start_with_little_to_do_leaves_parts_as_they_are() -> None:
    runs = []
    for threads in (1, 2):
        net = core("2 ms", start="1.2 s")
        first, last = (next(one for one in net.nodes if one.name == name) for name in ("a0", "b0"))
        net.udp(first, last, rate="100 Mbit/s")
        runs.append(net.run("2 s", threads=threads))
    assert runs[1].warnings == ()
    assert digests(runs[1]) == digests(runs[0])


@pytest.mark.parametrize("threads", [0, 257, -1, 1.5, "two", True])
def test_not_so_many(threads: int) -> None:
    with pytest.raises(TidegateError, match="is not a number of threads: give a whole number from 1 to 256"):
        Network().run("1 s", threads=threads)


def test_they_are_for_simulations(tidegate: Run) -> None:
    with pytest.raises(TidegateError, match="threads are for backend='sim'"):
        Network().run("1 s", backend="live", threads=2)
    for words in (["--backend", "live"], ["--cluster", "local"]):
        done = tidegate("run", "separation.bufferbloat", "--quick", "--threads", "2", *words)
        assert done.code == 1
        assert "--threads is for simulations of this machine; leave it out" in done.err
    for command in (["sweep", "--over", "flows=1"], ["tune", "--range", "flows=1:2", "--minimise", "drops"]):
        words = [command[0], "reference.dumbbell", *command[1:], "--threads", "2", "--cluster", "local"]
        done = tidegate(*words)
        assert done.code == 1
        assert "--threads is for simulations of this machine; leave it out" in done.err


def test_an_experiment_has_the_same_rows(tidegate: Run, tmp_path: Path) -> None:
    words = ["--quick", "--set", "flows=10", "--json"]
    one = tidegate("run", "reference.dumbbell", *words, "--out", tmp_path / "one")
    two = tidegate("run", "reference.dumbbell", *words, "--out", tmp_path / "two", "--threads", "2")
    assert two.json["rows"] == one.json["rows"]
    assert (one.json["warnings"], two.json["warnings"]) == ([], [])


def test_a_sweep_has_the_same_table(tidegate: Run, tmp_path: Path) -> None:
    words = ["sweep", "reference.dumbbell", "--quick", "--over", "flows=5,10", "--set", "duration_s=3"]
    one = tidegate(*words, "--out", tmp_path / "one")
    two = tidegate(*words, "--out", tmp_path / "two", "--threads", "2")
    assert (one.code, two.code) == (0, 0), two.err
    assert "--threads 2: " in two.err
    tables = [(tmp_path / name / "rows.csv").read_text() for name in ("one", "two")]
    assert tables[0] == tables[1]
    assert tables[0].count("\n") == 3


@pytest.mark.slow
def test_a_study_has_the_same_trials(tidegate: Run, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="needs the extra `tune`")
    words = ["tune", "reference.dumbbell", "--quick", "--range", "flows=5:20", "--set", "duration_s=3"]
    words += ["--minimise", "drops", "--trials", "3", "--json", "--batch", "2"]
    one = tidegate(*words, "--out", tmp_path / "one").json
    two = tidegate(*words, "--out", tmp_path / "two", "--threads", "2").json
    assert two["trials"] == one["trials"]
    assert [trial["state"] for trial in one["trials"]] == 3 * ["complete"]
    assert two["warnings"] == []


def test_a_comparison_has_the_same_rows(tidegate: Run, tmp_path: Path) -> None:
    experiment = tmp_path / "mine.py"
    experiment.write_text(CAPTURED)
    words = ["compare", f"{experiment}:plain", f"{experiment}:captured", "--repeat", "1", "--json"]
    one = tidegate(*words, "--out", tmp_path / "one")
    two = tidegate(*words, "--out", tmp_path / "two", "--threads", "2")
    assert (one.code, two.code) == (0, 0), two.err
    assert two.json["rows"] == one.json["rows"]
    # What a run could not do is said here, too.
    assert "warning: mine.captured: only, seed 1: ran on 1 of 2 threads: packets are captured" in two.err
    assert "warning" not in one.err


CAPTURED = """
from tempfile import mkdtemp
from matplotlib.figure import Figure
from tidegate.experiments import Case, Plan
from tidegate.network import Network
from tidegate.topologies import dumbbell

def plan(capture):
    net = Network()
    bell = dumbbell(net, 4, bottleneck={"rate": "1 Gbit/s", "delay": "10 ms", "queue": "100 packets"})
    for a, b in bell.pairs:
        net.tcp(a, b)
    if capture:
        net.capture(bell.bottleneck, bell.bottleneck.a, mkdtemp() + "/all.pcap")
    measure = lambda result: {"mbps": float(result.flows["goodput_mbps"].sum())}
    return Plan([Case("only", net, "500 ms", measure)], lambda rows: [], lambda runs: Figure())

def plain() -> Plan:
    return plan(False)

def captured() -> Plan:
    return plan(True)
"""


@pytest.mark.parametrize(
    ("has", "threads", "said"),
    [
        (8, 2, "--threads 2: 4 runs at a time on 8 processors; more if the first uses fewer\n"),
        (2, 2, "--threads 2: 1 run at a time on 2 processors; more if the first uses fewer\n"),
        (
            2,
            3,
            "--threads 3: 1 run at a time on 2 processors; its threads take turns; more if the first uses fewer\n",
        ),
        (8, 1, ""),
    ],
)
def test_runs_and_their_threads_share_the_processors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has: int, threads: int, said: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(has)))
    assert carrying.beside(threads) == has
    assert capsys.readouterr().err == said


class Nowhere:
    """Where tables would go."""

    def write_tables(self, run: plan.Run) -> None:
        pass

    def add(self, run: plan.Run) -> None:
        pass


@pytest.mark.parametrize(
    ("used", "given", "at_once"),
    [
        # On two processors, runs that are to have two threads.
        (1, [2, 1, 1, 1], 2),
        (2, [2, 2, 2], 1),
    ],
)
def test_where_the_first_run_cannot_use_threads_others_run_beside_each_other(
    monkeypatch: pytest.MonkeyPatch, used: int, given: list[int], at_once: int
) -> None:
    context = multiprocessing.get_context("fork")
    here, most, both = context.Value("i", 0), context.Value("i", 0), context.Event()
    threads_of = context.Array("i", len(given))

    def run(
        store: object, tell: object, case: plan.Case, seed: int, backend: str, *, threads: int
    ) -> plan.Run:
        threads_of[seed] = threads
        if common.on_threads is not None:
            common.on_threads(used)
        with here.get_lock(), most.get_lock():
            here.value += 1
            most.value = max(most.value, here.value)
            if here.value == 2:
                both.set()
        # Long enough for another one to begin, if any may.
        both.wait(20 if at_once > 1 and seed > 0 else 0.6)
        with here.get_lock():
            here.value -= 1
        return plan.Run(case.name, seed, [], {})

    monkeypatch.setattr(processes, "written", run)
    case = plan.Case("only", Network(), "1 s", lambda result: [])
    jobs = Jobs(None, [case], [(0, seed) for seed in range(len(given))], "sim", Nowhere(), threads=2)  # type: ignore[arg-type]
    ended = Ended()
    processes.Processes(2).run(jobs, lambda done, running, new: None, ended)
    assert ended.error is None
    assert sorted(run.seed for run in ended.runs) == list(range(len(given)))
    assert (list(threads_of), most.value) == (given, at_once)


def test_a_run_says_on_how_many_threads_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    said: set[int] = set()
    monkeypatch.setattr(common, "on_threads", said.add)
    fabric()[0].run("2 ms", threads=2)
    assert said == {2}
    said.clear()
    Network().run("1 ms", threads=2)
    assert said == {1}


def test_what_all_runs_warn_of_is_said_once() -> None:
    runs = [plan.Run("a", seed, [], {}, ("all do", f"of {seed}")) for seed in (1, 2)]
    assert running.warnings(runs) == ["all 2 runs: all do", "a, seed 1: of 1", "a, seed 2: of 2"]
    assert running.warnings(runs[:1]) == ["a, seed 1: all do", "a, seed 1: of 1"]


def test_what_all_runs_warn_of_stays_with_each_when_it_goes_on() -> None:
    runs = [
        plan.Run("a", seed, [{"case": "a", "seed": seed}], {}, ("all do", f"of {seed}")) for seed in (1, 2)
    ]
    rows = [row for run in runs for row in run.rows or []]
    record = {"rows": rows, "warnings": running.warnings(runs)}
    assert [one.warnings for one in folder.complete(record)] == [("all do", "of 1"), ("all do", "of 2")]
