"""A network with controllers, timed actions, records, captures, and the run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate import control, html, units
from tidegate._core import TidegateError
from tidegate.control.quantities import demand_known
from tidegate.hosts.agents import Agent, Attached
from tidegate.network import drawing
from tidegate.network.flows import Flows
from tidegate.network.links import Link
from tidegate.network.nodes import Node, Switch

if TYPE_CHECKING:
    from tidegate.results import Result

Action = Callable[[], None]


class Network(Flows):
    """A network, its controllers, actions, records and captures.

    >>> net = Network()
    >>> a, b = net.host("a"), net.host("b")
    >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
    >>> flow = net.tcp(a, b)
    >>> net
    <Network: 2 hosts, 1 link, 1 flow>
    >>> net.run("1 s")
    <Result: 1 s, seed 1; 1 flow, 91.8 Mbit/s in all, 0 retransmissions>
    """

    def __init__(self) -> None:
        super().__init__()
        self.actions: list[tuple[int, Action]] = []
        self.controllers: list[tuple[control.Controller, tuple[Switch, ...]]] = []
        self.restarts: list[tuple[int, control.Controller, int]] = []
        self.sampling: int | None = None
        self.quantities: list[tuple[Any, ...]] = []
        """Period, name and labels of what is noted of all P4 switches."""
        self.watched: list[Link] = []
        self.captures: list[tuple[Link, Node, Path, int]] = []
        self._runs_in: set[int] = set()
        self.agents: list[Attached] = []
        self.taps: list[tuple[Link, Switch, int | None, int | None, int]] = []

    def __repr__(self) -> str:
        return f"<Network: {self._counted()}>"

    def _counted(self) -> str:
        kinds = [node.kind for node in self.nodes]
        counts = {
            "host": kinds.count("host"),
            "router": kinds.count("router"),
            "switch": kinds.count("switch"),
            "link": len(self.links),
            "flow": len(self.flows),
        }
        return ", ".join(html.counted(count, what) for what, count in counts.items() if count) or "empty"

    def _repr_html_(self) -> str:
        """For notebooks: a picture, links and flows."""
        links = [
            (link.name, units.show_rate(link.forward.rate), units.show_time(link.forward.delay))
            for link in self.links
        ]
        flows = [(flow.number, flow.kind, flow.label, flow.about) for flow in self.flows]
        return (
            html.paragraph(f"Network: {self._counted()}")
            + drawing.svg(self.nodes, self.links)
            + html.table(("link", "rate", "delay"), links)
            + html.table(("flow", "kind", "label", ""), flows)
        )

    def restart(self, controller: control.Controller, at: units.Time, down: units.Time = 0) -> None:
        """Stop a controller at a time of the run and restart it `down` later.

        Meanwhile its switches keep its settings and messages for it are lost. Its recordings end; ticks restart.
        """
        if not any(controller is known for known, _ in self.controllers):
            raise TidegateError(f"{controller!r} controls nothing here; call net.control first")
        self.restarts.append((units.given_time(at), controller, units.given_time(down)))

    def control(self, controller: control.Controller, *switches: Switch) -> None:
        """Attach a controller to switches; to all of the network if none is given.

        Refused for a switch whose clock is not the one that the controller's program is written for (`Controller.clock`).
        """
        if not isinstance(controller, control.Controller):
            raise TidegateError(f"{controller!r} is not a controller")
        for switch in switches:
            if not isinstance(switch, Switch) or switch not in self.nodes:
                name = getattr(switch, "name", repr(switch))
                raise TidegateError(f"{name} is not a switch of this network")
        for node in switches or self.nodes:
            if isinstance(node, Switch):
                node.demand_clock(controller)
        self.controllers.append((controller, switches))

    def at(self, when: units.Time, action: Action) -> None:
        """Call `action` at a time of the run. Its changes of links (`Link.set`) apply to that run only.

        >>> net = Network()
        >>> net.at("1 s", lambda: print("one second has passed"))
        >>> result = net.run("2 s")
        one second has passed
        """
        if not callable(action):
            raise TidegateError(f"an action at a time of the run is something to call, not {action!r}")
        self.actions.append((units.given_time(when), action))

    def record(
        self,
        period: units.Time,
        queues: Iterable[Link] = (),
        quantities: Iterable[str | tuple[object, ...]] = (),
    ) -> None:
        """Sample all TCP flows, and the queues of these links in both directions, on a period.

        Several calls add queues and quantities; all have the same period. `quantities` of all P4 switches come to
        `Result.notes`: names (`tidegate.control.quantities`), or tuples of a name and labels.

        >>> net = Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> flow = net.tcp(a, b)
        >>> net.record("100 ms", queues=[link])
        >>> net.run("1 s").flow_samples.select("time_s", "cwnd_packets").head(2).rows()
        [(0.0, 10), (0.1, ...)]
        """
        sampling = units.given_time(period)
        if sampling == 0:
            raise TidegateError("the period of recording is 0; give one above 0")
        if self.sampling not in (None, sampling):
            raise TidegateError(
                f"this network is recorded every {units.show_time(self.sampling)} already, and not every "
                f"{units.show_time(sampling)}; give the same period"
            )
        links = [queues] if isinstance(queues, Link) else list(queues)
        for link in links:
            self._demand_link(link, "a link whose queues are recorded")
        names = [
            (quantity,) if isinstance(quantity, str) else tuple(quantity)
            for quantity in ([quantities] if isinstance(quantities, str) else quantities)
        ]
        for name in names:
            demand_known(*name)
        self.sampling = sampling
        self.watched.extend(links)
        self.quantities.extend((sampling, *name) for name in names)

    def capture(
        self, link: Link, node: Node, path: str | PathLike[str], *, snap: units.Size = "256 KiB"
    ) -> None:
        """Capture the packets at `node`'s end of a link, in both directions, to a pcap file with times in nanoseconds.

        A sent packet has the time of its first bit on the wire, after the queue; a received packet that of its last. `snap`
        cuts packets to a length: headers need at most 94 bytes, and payload is zero bytes anyway. The file is there when
        the run has ended, and takes the place of one of that name.

        >>> import tempfile
        >>> net = Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> flow = net.tcp(a, b, size="10 kB")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     net.capture(link, a, f"{folder}/a.pcap", snap="96 B")
        ...     net.run("1 s").flows["bytes_received"].item()
        10000
        """
        if not isinstance(path, str | PathLike):
            raise TidegateError(f"the path of a capture is {path!r:.40}; give a file's name")
        self._demand_link(link, f"the link of the capture {path}")
        if node not in (link.a, link.b):
            raise TidegateError(f"the capture {path}: {node.name} is at no end of {link.name}")
        length, file = units.size(snap), Path(path)
        if not 1 <= length <= 256 * 1024:
            raise TidegateError(f"the capture {path}: a snap length of {length} bytes; give 1 B to 256 KiB")
        if file.exists() and not file.is_file():
            what = "a folder" if file.is_dir() else "a device or a pipe"
            raise TidegateError(f"the capture {path}: that is {what}; give a file's name")
        if any(file == other for *_, other, _ in self.captures):
            raise TidegateError(f"the capture {path}: there is one with that name already")
        self.captures.append((link, node, file, length))

    def agent(self, host: Node, agent: Agent) -> Attached:
        """Attach an agent to a host, outside those it already has: the first is next to TCP (`tidegate.hosts.agents`)."""
        self._demand_node(host, "the host of an agent")
        if host.kind != "host":
            raise TidegateError(f"{host.name} is no host; only a host can have an agent")
        if not isinstance(agent, Agent):
            raise TidegateError(f"{agent!r} is no agent; derive it from tidegate.hosts.agents.Agent")
        attached = Attached(host, agent)
        self.agents.append(attached)
        return attached

    def tap(
        self,
        link: Link,
        switch: Switch,
        *,
        forward: int | None = 6,
        reverse: int | None = 7,
        every: int = 1,
    ) -> None:
        """Mirror a link to a switch, as an optical splitter does.

        A copy of each packet enters the switch when its last bit reaches the link's far end: by its port `forward` from
        `link.a` to `link.b`, by `reverse` from `link.b` to `link.a`; `None`: that direction is not copied. These ports
        need no link of their own, and what the switch sends there is dropped. Packets that the link loses are not seen.
        Copies take none of the link's time.

        `every`: sample: a flow's packets are copied in one of so many seconds (flows in turn), SYN, FIN and RST at all
        times. Faster for large runs; a monitor counts about that fraction.
        """
        self._demand_link(link, "the link of a tap")
        if not isinstance(switch, Switch) or switch not in self.nodes:
            name = getattr(switch, "name", repr(switch))
            raise TidegateError(f"{name} is no switch of this network; a tap leads to one")
        if forward == reverse:
            what = "no port" if forward is None else f"port {forward}"
            raise TidegateError(f"the tap of {link.name} has {what} for both directions; give two")
        if not isinstance(every, int) or every < 1:
            raise TidegateError(
                f"every is {every!r}; give the number of seconds of which a flow is shown in one"
            )
        self.taps.append((link, switch, forward, reverse, every))

    def run(
        self,
        until: units.Time,
        *,
        backend: str = "sim",
        seed: int = 1,
        progress: Callable[[int, int], None] | bool | None = None,
        live_profile: str | None = None,
        threads: int = 1,
    ) -> Result:
        """Run the network until a time, and return the result.

        `backend` is `sim`, the simulator, or `live`: real Linux hosts, by the clock (docs/live.md). `progress` is called now
        and then with the picoseconds done and to do. If it is not given and standard error is a terminal, a bar shows
        simulated time, speed and estimate when a run takes longer than two seconds. A bool switches the bar: `True` shows
        it at once, `False` suppresses it. An interrupt (Ctrl-C) ends the run; the result holds what was recorded until
        then, and says so in `Result.interrupted`. `live_profile` is for the live backend: `latency` (short, even delays;
        the default) or `throughput`. `threads` is for the simulator: the results are those of one thread, to the bit, and
        `Result.warnings` says why fewer were used.

        >>> Network().run(1)
        Traceback (most recent call last):
        ...
        tidegate._core.TidegateError: 1 what? say '1 s'; a whole number alone is a time in picoseconds
        """
        from tidegate import backends
        from tidegate.progress import Bar, in_notebook

        chosen = backends.find(backend)
        if live_profile is not None:
            if backend != "live":
                raise TidegateError("live_profile is for backend='live'; leave it out")
            from tidegate.backends import live

            chosen = partial(live.run, profile=live_profile)
        if units.below(threads, 1, 257, "a number of threads") > 1:
            if backend != "sim":
                raise TidegateError("threads are for backend='sim'; leave them out")
            from tidegate.backends import sim

            chosen = partial(sim.run, threads=threads)
        end = units.run_time(until)
        units.seed(seed)
        if progress is None:
            progress = sys.stderr.isatty() or in_notebook()
            wait_s = 2.0
        else:
            wait_s = 0.0
        if isinstance(progress, bool):
            told: Callable[[int, int], None] | None = (
                Bar(wait_s, "simulating" if backend == "sim" else "running") if progress else None
            )
        else:
            told = progress
        thread = threading.get_ident()
        if thread in self._runs_in:
            raise TidegateError("the network is running: an action of it cannot run it once more")
        self._runs_in.add(thread)
        try:
            return chosen(self, end, seed, told)
        finally:
            self._runs_in.discard(thread)
