"""Who manages the queues of a P4 switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate.network import Network


@pytest.mark.parametrize(
    ("asked", "later"), [({"aqm": "codel"}, False), ({"mark_above": 20}, False), ({"mark_above": 20}, True)]
)
def test_only_its_program_manages_a_p4_switch_s_queues(asked: dict[str, Any], later: bool) -> None:
    example = Path(__file__).parent.parent / "examples" / "p4" / "ipv4_router" / "ipv4_router.p4"
    net = Network()
    a, switch, b = net.host("a"), net.switch("s", example), net.host("b")
    net.link(a, switch, rate="1 Gbit/s", delay="1 ms")

    def build_and_run() -> None:
        link = net.link(switch, b, rate="1 Gbit/s", delay="1 ms", **({} if later else asked))
        if later:
            link.set("1 ms", **asked)
        net.run("2 ms")

    with pytest.raises(TidegateError, match=r"the P4 switch s are managed by its program; leave `\w+` out"):
        build_and_run()
