"""The dashboard's topology under a pointer: which node or link it is, and its numbers."""

from __future__ import annotations

from typing import Any

import pytest

from test_view import EVIL, many, tick
from tidegate.view.page import Page
from viewers import looked, until

HOSTS = 200
NUMBERS = ("rate (Mbit/s)", "packets", "delay (ms)", "dropped")


def numbers(made: Any, queue: int) -> str:
    """Those of a queue, as the page has them."""
    fields = ("rate_mbps", "packets", "delay_ms", "dropped")
    values = [made.evaluate(f"shown(columns['queue {name}'][{queue}])") for name in fields]
    return ", ".join(f"{name} {value}" for name, value in zip(NUMBERS, values, strict=True))


def at(made: Any, share: float, host: int) -> None:
    """Point at a place between the switch and a host."""
    script = f"[0, 1].map((axis) => spots[0][axis] + {share} * (spots[{host + 1}][axis] - spots[0][axis]))"
    x, y = made.evaluate(script)
    made.locator("#topology").hover(position={"x": x, "y": y})


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_nodes_and_links_of_many_say_what_they_are(browser: Any, width: int) -> None:
    with Page() as page:
        page.begin(many(HOSTS, 10))
        made, errors = looked(browser, page.url, viewport={"width": width, "height": 900})
        until(lambda: tick(page, 1, HOSTS, 10) or made.evaluate("spots.length") == HOSTS + 1)
        tip = made.locator("#tip")
        assert tip.is_hidden()
        # Names with tags, from right to left, without an end, and of spaces.
        for host in range(10, 15):
            at(made, 1, host)
            said = tip.locator("p").all_text_contents()
            names = made.evaluate(f"[about.nodes[{host + 1}][0], about.queues[{host}]]")
            assert said == [f"host {names[0]}", names[1], numbers(made, host)]
            at(made, 0.8, host)
            assert tip.locator("p").all_text_contents() == said[1:]
            box, room = tip.bounding_box(), made.locator("#topology").bounding_box()
            assert room["x"] <= box["x"]
            assert box["x"] + box["width"] <= room["x"] + room["width"]
        at(made, 0.8, 10)
        assert EVIL in tip.inner_text()
        before = tip.inner_text()
        until(lambda: tick(page, 2, HOSTS, 10) or tip.inner_text() != before)
        assert numbers(made, 10) in tip.inner_text()
        # Of a switch the busiest directions.
        at(made, 0, 0)
        assert tip.locator("p").count() == 1 + 2 * 6 + 1
        assert tip.locator("p").last.inner_text() == f"and {HOSTS - 6} more"
        busiest = made.evaluate("Math.max(...columns['queue rate_mbps'])")
        assert f"rate (Mbit/s) {busiest:.4g}" in tip.locator("p").nth(2).inner_text()
        made.keyboard.press("Escape")
        assert tip.is_hidden()
        at(made, 1, 10)
        made.locator("h1").hover()
        assert tip.is_hidden()
        assert made.locator("img").count() == 0
        assert made.evaluate("document.documentElement.scrollWidth") == width
    assert [one for one in errors if "WebSocket" not in one] == []
