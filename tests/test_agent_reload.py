"""What the programs of `tidegate agent` stand at, when its settings change and when cgroups do."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from live import needs_agents
from namespaces import Place, ip, needs_root, place, within
from tidegate.systems.pacing.service.pacer import Pacer
from tidegate.systems.pacing.service.settings import Settings

Links = list[tuple[str, ...]]


class Rig:
    """The programs on a host with two interfaces."""

    def __init__(self, at: Place, stack: ExitStack) -> None:
        self._netns = f"/run/netns/{at.hosts[0].netns}"
        self._stack = stack
        ip("-n", at.hosts[0].netns, "link", "add", "e1", "type", "dummy")
        self.at = at

    def pacer(self, **settings: object) -> Pacer:
        made = within(self._netns, lambda: Pacer(Settings(**settings)))  # type: ignore[arg-type]
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

        return within(self._netns, change)


@pytest.fixture
def rig() -> Iterator[Rig]:
    with ExitStack() as stack:
        yield Rig(stack.enter_context(place(1)), stack)


def links() -> Links:
    """The links that this process has to interfaces and cgroups, as the kernel describes them: kind and target."""
    found = []
    for file in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = dict(line.split(":\t", 1) for line in file.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if lines.get("link_type") == "tcx":
            found.append(("tcx", lines["ifindex"].split()[0], lines["attach_type"].strip()))
        elif lines.get("link_type") == "cgroup":
            found.append(("cgroup", lines["cgroup_id"].strip()))
    return sorted(found)


@needs_root
@needs_agents
def test_an_interface_that_is_chosen_no_more_is_left(rig: Rig) -> None:
    pacer = rig.pacer(interfaces=("e0",))
    before = links()
    assert rig.use(pacer, interfaces=("e0", "e1")) == ""
    assert len(links()) == len(before) + 2
    assert rig.use(pacer, interfaces=("e0",)) == ""
    assert links() == before
