"""What somebody meets who uses Tidegate for the first time: names, messages, and what objects say of themselves."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tidegate as package
from conftest import EXAMPLES, Run
from tidegate import TidegateError, p4, topologies, units
from tidegate.control import Controller, Port, Queue
from tidegate.experiments import find
from tidegate.experiments import run as run_experiment
from tidegate.hosts.agents import Agent
from tidegate.network import Link, Network, Node

ROUTER = EXAMPLES / "ipv4_router" / "ipv4_router.p4"


def pair() -> tuple[Network, Node, Node, Link]:
    net = package.Network()
    a, b = net.host("a"), net.host("b")
    return net, a, b, net.link(a, b, rate="100 Mbit/s", delay="5 ms")


def said(call: Callable[[], object]) -> str:
    with pytest.raises(TidegateError) as refused:
        call()
    return str(refused.value)


# Did you mean.


def test_an_experiment_that_is_mistyped() -> None:
    assert said(lambda: find("meter.rate")) == (
        "there is no experiment 'meter.rate'; did you mean 'meter.rates'? `tidegate list` shows all"
    )
    assert "did you mean 'aqm.phases'?" in said(lambda: find("phases"))
    assert "did you mean 'aqm.controller_placement'?" in said(lambda: find("aqm.controler_placement"))
    assert said(lambda: find("reference.xyz")).startswith(
        "there is no experiment 'reference.xyz'; reference has reference.bbr_cubic, "
    )
    assert "known: aqm.burst" in said(lambda: find("zzz"))


def test_a_parameter_that_is_mistyped(tidegate: Run, tmp_path: Path) -> None:
    expected = "meter.rates has no parameter 'rate_mbps'; did you mean 'rates_mbps'? it has rates_mbps, base_rtts_ms, "
    done = tidegate("run", "meter.rates", "--set", "rate_mbps=10")
    assert (done.code, done.out) == (1, "")
    assert expected in done.err
    # In Python it was an error of our own.
    call = lambda: run_experiment("meter.rates", {"rate_mbps": (10,)}, seeds=[1], out=tmp_path / "x")  # noqa: E731
    assert said(call).startswith(expected)


def test_values_that_are_mistyped(tidegate: Run) -> None:
    done = tidegate("run", "meter.rates", "--set", "schemes=plane")
    assert "schemes is 'plane'; did you mean 'plain'? known are " in done.err
    done = tidegate("run", "meter.rates", "--backend", "simm")
    assert done.code == 2
    assert "did you mean 'sim'?" in done.err
    done = tidegate("run", "meter.rates", "--quik")
    assert done.code == 2
    assert "--quick" in done.err
    net, a, b, _ = pair()
    assert "did you mean 'poisson'?" in said(lambda: net.udp(a, b, rate="1 Mbit/s", pattern="poison"))
    assert "did you mean 'rate'?" in said(
        lambda: topologies.dumbbell(net, 1, bottleneck={"rat": "1 Gbit/s"})  # type: ignore[typeddict-unknown-key]
    )
    assert "did you mean 'port_packets'?" in said(lambda: net.record("1 s", quantities="port_packet"))


def test_objects_of_a_program_that_are_mistyped(tidegate: Run, tmp_path: Path) -> None:
    net, *_ = pair()
    switch = net.switch("s", ROUTER, commands=["table_add rotes next_hop 10.0.0.0/8 => 1 0 0"])
    assert "no table `rotes`; did you mean `RouterIngress.routes`? there are `RouterIngress.routes`" in said(
        lambda: net.run("1 s")
    )
    switch.commands[:] = ["table_add routes nexthop 10.0.0.0/8 => 1 0 0"]
    assert "did you mean `RouterIngress.next_hop`?" in said(lambda: net.run("1 s"))
    for line, meant in (
        ("add rotes hdr.ipv4.dst:0x0a000000/8 next_hop(port:1, src:2, dst:3)", "RouterIngress.routes"),
        ("add routes hdr.ipv4.dts:0x0a000000/8 next_hop(port:1, src:2, dst:3)", "hdr.ipv4.dst"),
        ("add routes hdr.ipv4.dst:0x0a000000/8 nxt_hop(port:1, src:2, dst:3)", "RouterIngress.next_hop"),
        ("add routes hdr.ipv4.dst:0x0a000000/8 next_hop(prt:1, src:2, dst:3)", "port"),
    ):
        test = tmp_path / "test.stf"
        test.write_text(line + "\n")
        done = tidegate("stf", ROUTER, test)
        assert done.code == 1
        assert f"did you mean `{meant}`?" in done.err, line


# One experiment.


def test_one_experiment_is_described(tidegate: Run) -> None:
    done = tidegate("list", "meter.rates")
    assert done.code == 0
    assert done.out.startswith("meter.rates  (sim, live)\n\n" + find("meter.rates").summary)
    assert "\nrates_mbps: list of whole numbers, Mbit/s\n    default: " in done.out
    assert "\nduration_s: whole number, s\n    from 2 on\n    default: " in done.out
    assert "\nschemes: list of names\n    of plain, " in done.out
    assert "    --quick: " in done.out
    assert done.out.endswith("\ntidegate run meter.rates --quick\n")


def test_the_experiments_of_a_system(tidegate: Run) -> None:
    done = tidegate("list", "reference", "--json")
    names = [one["name"] for one in done.json["experiments"]]
    assert "reference.dumbbell" in names
    assert all(name.startswith("reference.") for name in names)
    about = next(one for one in done.json["experiments"] if one["name"] == "reference.dumbbell")["about"]
    assert about["flows"] == {"type": "list of whole numbers", "unit": None, "least": 1, "most": 10_000}
    assert about["duration_s"]["unit"] == "s"
    assert "did you mean 'reference.policer'?" in tidegate("list", "reference.polcer").err


def test_every_experiment_has_a_description(tidegate: Run) -> None:
    from tidegate.experiments import all_experiments

    for one in all_experiments().values():
        assert one.about().keys() == one.parameters().keys()
        assert one.text.startswith(one.summary)


# Python.


def test_programs_by_name() -> None:
    assert package.program("meter").parts[-2:] == ("meter", "meter.p4")
    assert package.program("aqm/dualpi2").exists()
    assert package.program("dualpi2.p4") == package.program("dualpi2")
    assert "there is no program 'dualpi'; did you mean 'dualpi2'?" in said(lambda: package.program("dualpi"))
    # What others include is no program.
    assert "no program 'common'" in said(lambda: package.program("common"))


def test_a_result_is_saved_by_a_path_as_text(tmp_path: Path) -> None:
    net, a, b, _ = pair()
    net.tcp(a, b)
    net.run("100 ms").save(str(tmp_path / "made"))
    assert pl.read_parquet(tmp_path / "made" / "flows.parquet").height == 1
    (tmp_path / "file").touch()
    assert "file: cannot be made: File exists" in said(lambda: net.run("100 ms").save(tmp_path / "file"))


def test_modules_are_there_after_one_import() -> None:
    look = "import tidegate; print(tidegate.topologies.dumbbell.__name__, tidegate.p4.compile.__name__)"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout == "dumbbell compile\n"


def test_ctrl_c_is_one_line_from_the_first_modules_on() -> None:
    """`__main__` says so, which Python imports after the package itself: that loads nothing that takes a while."""
    look = "import sys; sys.path.insert(0, sys.argv[1]); import tidegate; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", look, package.INCLUDE], capture_output=True, text=True, check=True
    )
    assert {"pathlib", "typing", "re", "difflib", "tidegate._core"}.isdisjoint(ran.stdout.split())


def test_lists_are_not_text() -> None:
    """Each character of it would be a folder."""
    assert said(lambda: p4.compile(ROUTER, includes="dir")) == "includes is a list: write includes=['dir']"
    assert said(lambda: p4.compile(ROUTER, defines="A=1")) == "defines is a list: write defines=['A=1']"


@pytest.mark.filterwarnings("error")
def test_names_are_shown_as_they_are() -> None:
    """A formula of Matplotlib's is between two dollar signs."""
    net = Network()
    a, b = net.host("$x_$"), net.host("b")
    link = net.link(a, b, rate="10 Mbit/s", delay="1 ms")
    net.udp(a, b, rate="20 Mbit/s")
    net.record("100 ms", queues=[link])
    for wanted in ("$x_$ -> b", "1 cubic $x_$ -> b"):
        figure = net.run("300 ms").figure()
        figure.savefig(io.BytesIO())
        legends = [axes.get_legend() for axes in figure.axes]
        assert wanted in [text.get_text() for legend in legends if legend for text in legend.get_texts()]
        net.tcp(a, b)


def test_what_objects_say_of_themselves() -> None:
    net, a, b, link = pair()
    flow = net.tcp(a, b, size="1 MB", label="<b>")
    assert repr(net) == "<Network: 2 hosts, 1 link, 1 flow>"
    assert repr(a) == "<host a>"
    assert repr(link) == "<link a - b: 100 Mbit/s, 5 ms, queue of 1000 packets>"
    link.forward = link.network.wire_at(link, "forward", 0)
    assert repr(flow) == "<tcp flow 0: <b>, 1000000 B from 0 s>"
    assert repr(p4.compile(ROUTER)) == "<v1model program: tables 1, registers 0, counters 0, meters 0>"
    result = net.run("1 s")
    assert repr(result).startswith("<Result: 1 s, seed 1; 1 flow, ")
    for html in (net._repr_html_(), result._repr_html_()):
        assert html.startswith("<p>")
        assert "<table>" in html
        assert "&lt;b&gt;" in html
        assert "<b>" not in html
    for _ in range(30):
        net.tcp(a, b)
    assert "and 11 more" in net._repr_html_()
    assert "and 11 more" in net.run("10 ms")._repr_html_()
    assert repr(Network()) == "<Network: empty>"
    assert "0 flows" in repr(Network().run("1 s"))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda net, a, b, link: net.run(1), "1 what? say '1 s'"),
        (lambda net, a, b, link: net.run(2.5), "2.5 what? say '2.5 s'"),
        (lambda net, a, b, link: net.tcp(a, b, start=1), "1 what? say '1 s'"),
        (lambda net, a, b, link: net.tcp(a, b, stop=10), "10 what? say '10 s'"),
        (lambda net, a, b, link: net.at(5, print), "5 what? say '5 s'"),
        (lambda net, a, b, link: net.record(1), "1 what? say '1 s'"),
        (lambda net, a, b, link: link.set(3, loss=0.1), "3 what? say '3 s'"),
        (lambda net, a, b, link: net.udp(a, b, rate=20), "20 what? say '20 Mbit/s'"),
        (lambda net, a, b, link: net.tcp(a, b, size=1.5), "1.5 what? say '1.5 kB'"),
        (lambda net, a, b, link: net.workload([(a, b)], load=1, rate=100, stop="1 s"), "100 what? say"),
        (
            lambda net, a, b, link: net.link(net.router("r"), net.router("q"), rate=10, delay="1 ms"),
            "10 what? say '10 Mbit/s'",
        ),
        (
            lambda net, a, b, link: net.link(net.router("r"), net.router("q"), rate="1 Gbit/s", delay=10),
            "10 what? say '10 s'",
        ),
        (
            lambda net, a, b, link: net.link(
                net.router("r"), net.router("q"), rate="1 Gbit/s", delay="1 ms", jitter=2
            ),
            "2 what? say '2 s'",
        ),
        (lambda net, a, b, link: link.set("1 s", jitter=2), "2 what? say '2 s'"),
        (lambda net, a, b, link: link.set("1 s", reorder_by=5), "5 what? say '5 s'"),
        (lambda net, a, b, link: net.tcp(a, b, rto_min=200), "200 what? say '200 s'"),
        (lambda net, a, b, link: net.tcp(a, b, delayed_ack=40), "40 what? say '40 s'"),
        (lambda net, a, b, link: net.tcp(a, b, extra_delay=30), "30 what? say '30 s'"),
        (lambda net, a, b, link: net.transfers([(1, "1 kB", a, b)]), "1 what? say '1 s'"),
        (lambda net, a, b, link: net.transfers([(0, "1 kB", a, b, 30)]), "30 what? say '30 s'"),
        (lambda net, a, b, link: net.transfers([(0, "1 kB", a, b)], extra_delay=30), "30 what? say '30 s'"),
        (lambda net, a, b, link: ticking(net, a, Agent, 1), "1 what? say '1 s'"),
        (lambda net, a, b, link: ticking(net, a, Controller, 1), "1 what? say '1 s'"),
        (lambda net, a, b, link: net.run(np.int64(10)), "10 what? say '10 s'"),
        (lambda net, a, b, link: net.udp(a, b, rate=np.int64(100)), "100 what? say '100 Mbit/s'"),
    ],
)
def test_numbers_without_a_unit(write: Callable[..., object], message: str) -> None:
    assert message in said(lambda: write(*pair()))


def ticking(net: Network, host: Node, base: type[Agent | Controller], period: units.Time) -> None:
    """A run with an agent or a controller that has this period."""
    one = type("Ticks", (base,), {"period": period})()
    if isinstance(one, Agent):
        net.agent(host, one)
    else:
        net.switch("s", ROUTER)
        net.control(one)
    net.run("10 ms")


def test_no_time_at_all_needs_no_unit() -> None:
    net, a, b, link = pair()
    link.set(0, delay=0, jitter=0, reorder_by=0)
    net.transfers([(0, "1 kB", a, b, 0)], extra_delay=0, delayed_ack=0)
    assert net.run(np.int64(10**12)).flows["bytes_received"].to_list() == [1000]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda net, a, b, link: net.tcp(a, b, ecn="maybe"),
            "the TCP flow a -> b: there is no ECN mode `maybe`; known: off, passive, on, accurate",
        ),
        (lambda net, a, b, link: net.tcp(a, b, size="0 B"), "the TCP flow a -> b has the size 0"),
        (lambda net, a, b, link: net.tcp(a, b, mss=70_000), "the TCP flow a -> b has an MSS of 70000 bytes"),
        (
            lambda net, a, b, link: net.tcp(a, b, initial_cwnd=0),
            "the TCP flow a -> b has an initial window of 0 packets",
        ),
        (
            lambda net, a, b, link: net.tcp(a, b, start="2 s", stop="1 s"),
            "the TCP flow a -> b stops at 1 s, before it starts at 2 s",
        ),
        (lambda net, a, b, link: net.transfers([(0, 0, a, b)]), "a -> b has the size 0"),
        (lambda net, a, b, link: net.udp(a, b, rate="0 bit/s"), "the UDP flow a -> b sends nothing"),
        (lambda net, a, b, link: net.udp(a, b, rate="1 Mbit/s", payload=0), "a -> b sends nothing"),
        (
            lambda net, a, b, link: net.request_response(a, b, request="0 B"),
            "the page a -> b: a page asks for nothing",
        ),
        (
            lambda net, a, b, link: net.link(a, net.router("r"), rate="1 Gbit/s", delay="1 ms"),
            "host a has a link already; connect it to a router",
        ),
        (
            lambda net, a, b, link: net.link(net.router("r"), net.nodes[2], rate="1 Gbit/s", delay="1 ms"),
            "the link r - r connects a node to itself",
        ),
        (
            lambda net, a, b, link: net.link(net.router("r"), net.host("c"), rate="0 bit/s", delay="1 ms"),
            "the link r - c has the rate 0",
        ),
        (
            lambda net, a, b, link: net.link(net.router("r"), net.host("c"), rate="1 bit/s", delay="1 ms"),
            "the link r - c takes 140 days to send what its queue holds, and 30 are the most; give it a higher rate or",
        ),
        (
            lambda net, a, b, link: link.set("1 s", rate="2 bit/s"),
            "the link a - b takes 70 days to send what its queue holds",
        ),
        (
            lambda net, a, b, link: net.link(
                net.router("r"), net.host("c"), rate="1 Mbit/s", delay="2592001 s"
            ),
            "the link r - c has a delay of more than 30 days",
        ),
        (
            lambda net, a, b, link: net.link(
                net.router("r"), net.host("c"), rate="1 Gbit/s", delay="1 ms", aqm="red"
            ),
            "the link r - c: there is no queue management `red`; known: codel, pie",
        ),
        (
            lambda net, a, b, link: net.link(
                net.router("r"), net.switch("s", ROUTER), rate="1 Gbit/s", delay="1 ms", aqm="codel"
            ),
            "the queues of the P4 switch s are managed by its program; leave `aqm` out",
        ),
        (lambda net, a, b, link: link.set("1 s", loss=2.0), "the link a - b has loss 2"),
        (lambda net, a, b, link: net.host(""), "a node's name is text"),
        (lambda net, a, b, link: net.host(7), "a node's name is text, not 7"),
        (
            lambda net, a, b, link: net.host("a\n"),
            "the node's name 'a\\n' has a character that cannot be printed",
        ),
        (lambda net, a, b, link: net.record("1 s", quantities=["queues"]), "there is no quantity 'queues'"),
        (
            lambda net, a, b, link: net.record("1 s", quantities=[("port_packets", 1, 2, 3, 4)]),
            "port_packets: 4 labels are too many",
        ),
    ],
)
def test_wrong_values_are_refused_where_they_are_written(write: Callable[..., object], message: str) -> None:
    """Without a run."""
    net, a, b, link = pair()
    before = (len(net.links), len(net.flows), len(net.changes), net.sampling)
    assert message in said(lambda: write(net, a, b, link))
    assert (len(net.links), len(net.flows), len(net.changes), net.sampling) == before


def test_a_ports_settings_are_refused_where_they_are_written() -> None:
    net, *_ = pair()
    switch, router = net.switch("s", ROUTER), net.router("r")
    link = net.link(switch, router, rate="1 Gbit/s", delay="1 ms")
    assert "there is no scheduler" in said(lambda: net.configure(switch, link, Port((Queue(),), "fair")))
    assert switch.ports == []
