"""What the programs of `tidegate agent` stand at, when its settings change and when cgroups do."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from live import needs_agents
from namespaces import Place, ip, needs_root, place, within
from paced_hosts import GIVEN, cgroup2, net, paced_at, unlimited
from switches import wait_for
from tidegate.hosts import libbpf
from tidegate.systems.pacing.service.pacer import _KEY, PACKETS, Pacer
from tidegate.systems.pacing.service.settings import Settings

T = TypeVar("T")
Links = list[tuple[str, ...]]


class Rig:
    """The programs on a host with two interfaces."""

    def __init__(self, at: Place, stack: ExitStack) -> None:
        self._netns = f"/run/netns/{at.hosts[0].netns}"
        self._stack = stack
        ip("-n", at.hosts[0].netns, "link", "add", "e1", "type", "veth", "peer", "e2")
        ip("-n", at.hosts[0].netns, "link", "set", "lo", "up")

    def within(self, act: Callable[[], T]) -> T:
        """Do something on the host."""
        return within(self._netns, act)

    def pacer(self, **settings: object) -> Pacer:
        made = self.within(lambda: Pacer(Settings(**settings)))  # type: ignore[arg-type]
        self._stack.callback(made.close)
        return made

    def use(self, pacer: Pacer, **settings: object) -> str:
        """Change its settings; gives why it does not."""

        def change() -> str:
            try:
                pacer.use(Settings(**settings))  # type: ignore[arg-type]
            except Exception as error:
                return str(error)
            return ""

        return self.within(change)


@pytest.fixture
def rig() -> Iterator[Rig]:
    with ExitStack() as stack:
        yield Rig(stack.enter_context(place(1)), stack)


def links() -> Links:
    """What links of this process are attached to, as the kernel describes them: kind and target."""
    found = set()
    for file in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = dict(line.split(":\t", 1) for line in file.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if lines.get("link_type") == "tcx":
            found.add((lines["link_id"], "tcx", lines["ifindex"].split()[0], lines["attach_type"]))
        elif lines.get("link_type") == "cgroup":
            found.add((lines["link_id"], "cgroup", lines["cgroup_id"]))
    return sorted(one[1:] for one in found if one[2] != "0")


@needs_root
@needs_agents
def test_an_interface_that_is_chosen_no_more_is_left(rig: Rig) -> None:
    pacer = rig.pacer(interfaces=("e0",))
    before = links()
    assert rig.use(pacer, interfaces=("e0", "e1")) == ""
    assert len(links()) == len(before) + 2
    # As the keeper does, which is another process.
    held = [os.dup(link) for link in pacer._attached.values()]
    try:
        assert rig.use(pacer, interfaces=("e0",)) == ""
        assert links() == before
    finally:
        for link in held:
            os.close(link)


@pytest.fixture
def cgroups() -> Iterator[list[Path]]:
    """Two cgroups, with no process in them."""
    root = cgroup2() or pytest.skip("cgroups of version 2 are not mounted")
    made = [Path(root) / f"tidegate-test-{os.getpid()}-{number}" for number in (1, 2)]
    for folder in made:
        folder.mkdir()
    try:
        yield made
    finally:
        for folder in made:
            if folder.exists():
                folder.rmdir()


@needs_root
@needs_agents
def test_more_flows_ask_at_once_than_the_kernel_has_room_for(rig: Rig) -> None:
    """It gives 32 KiB at a time, which are 630 packets."""
    count = 1400
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * count + 500)), hard))

    def connect() -> list[socket.socket]:
        ends = []
        with socket.create_server(("127.0.0.1", 5001)) as server:
            for _ in range(count):
                ends += [socket.create_connection(server.getsockname()), server.accept()[0]]
        return ends

    ends = rig.within(connect)
    try:
        pacer = rig.pacer(interfaces=("lo",))
        packets = rig.within(lambda: pacer._loaded.iterate(pacer._iterator))
        assert pacer.counts()["adopted"] == count
        # Each asks, and once.
        assert len(packets) == count * PACKETS[4][0]
        assert pacer.counts()["updates"] == count
    finally:
        for end in ends:
            end.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """This process is in a cgroup."""
    mine = Path("/proc/self/cgroup").read_text().splitlines()
    home = next(line[3:] for line in mine if line.startswith("0::")).lstrip("/")
    (folder / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (folder.parent / home / "cgroup.procs").write_text(str(os.getpid()))


def at(*folders: Path) -> Links:
    return sorted(("cgroup", str(folder.stat().st_ino)) for folder in folders)


def standing() -> Links:
    """Those of cgroups."""
    return [one for one in links() if one[0] == "cgroup"]


@needs_root
@needs_agents
@pytest.mark.parametrize("wrong", ["cgroup", "interface", "second side"])
def test_settings_that_are_refused_change_nothing(
    wrong: str, rig: Rig, cgroups: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = map(str, cgroups)
    pacer = rig.pacer(interfaces=("e0",), cgroups=(first,))
    before = links()
    given = {"interfaces": ("e0", "e1"), "cgroups": (first, second)}
    refused: dict[str, object] = dict(given)
    calls = []

    def fails(program: int, to: int, attach_type: int) -> int:
        calls.append(to)
        # First a cgroup, then two sides of an interface.
        if len(calls) == (2 if wrong == "interface" else 3):
            raise PermissionError(1, "not permitted")
        return link(program, to, attach_type)

    link = libbpf.link
    if wrong == "cgroup":
        refused["cgroups"] = (first, second, "/nowhere")
    else:
        monkeypatch.setattr(libbpf, "link", fails)
    assert ("/nowhere" if wrong == "cgroup" else "not permitted") in rig.use(pacer, **refused)
    monkeypatch.undo()
    assert links() == before
    # Each event is heard once.
    assert rig.use(pacer, **given) == ""
    assert standing() == at(*cgroups)
    assert len(links()) == len(before) + 3
    assert rig.use(pacer, interfaces=("e0",), cgroups=(second, second)) == ""
    assert standing() == at(cgroups[1])


@needs_root
@needs_agents
def test_a_cgroup_that_is_made_again_is_attached_to(rig: Rig, cgroups: list[Path]) -> None:
    pacer = rig.pacer(interfaces=("e0",), cgroups=tuple(map(str, cgroups)))
    first = cgroups[0]
    before = at(first)
    first.rmdir()
    assert rig.within(pacer.lost_cgroups) == [str(first)]
    # The kernel lets go of it behind our backs.
    wait_for(lambda: standing() == at(cgroups[1]))
    first.mkdir()
    assert at(first) != before
    assert rig.within(pacer.lost_cgroups) == []
    assert standing() == at(*cgroups)


@needs_root
@needs_agents
def test_flows_of_a_cgroup_that_is_chosen_no_more_are_let_go(cgroups: list[Path]) -> None:
    first, second = map(str, cgroups)
    with net() as made:
        here = f"/run/netns/{made.at.hosts[0].netns}"
        settings = Settings(interfaces=("e0",), cgroups=(first, second), lend=False)
        pacer = within(here, lambda: Pacer(settings))
        made.stack.callback(pacer.close)
        made.server()
        flows = []
        for folder in cgroups:
            with inside(folder):
                flows.append(made.connect())
        assert paced_at(flows[1], GIVEN / 2)()
        ended = dict(pacer._flows.items(_KEY.size)).popitem()[1]
        # One whose end nobody has heard of.
        pacer._flows[_KEY.pack(bytes(16), bytes(16), 1, 1)] = ended
        assert len(list(pacer.flows())) == 3
        within(here, lambda: pacer.use(replace(settings, cgroups=(second,))))
        assert unlimited(flows[0])()
        (left,) = pacer.flows()
        assert left.local[1] == flows[1].getsockname()[1]
        within(here, pacer.visit)
        assert unlimited(flows[0])()
        assert not unlimited(flows[1])()
        assert len(list(pacer.flows())) == 1


@needs_root
@needs_agents
def test_the_classes_of_flows_that_are_let_go_are_free(cgroups: list[Path]) -> None:
    first, second = map(str, cgroups)
    with net() as made:
        here = f"/run/netns/{made.at.hosts[0].netns}"
        settings = Settings(interfaces=("e0",), cgroups=(first, second), pace_by="htb")
        pacer = within(here, lambda: Pacer(settings))
        made.stack.callback(pacer.close)
        made.server()
        with inside(cgroups[0]):
            own = made.connect()
        wait_for(lambda: own.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY) == 0x7467_0001)
        within(here, lambda: pacer.use(replace(settings, cgroups=(second,))))
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY) == 0
        # The map has room for all classes and no more: one more is refused if all are there.
        with pytest.raises(OSError, match="too long"):
            pacer._loaded.map("free_classes", 4).push(bytes(4))
