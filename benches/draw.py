"""How long the dashboard takes to draw 200 hosts and 10 000 flows in Chromium: each draw, and a click on a column until its rows are there.

Medians with p10 and p90. Browser and page share the processors with whatever else the machine does.
"""

from __future__ import annotations

import shutil
import sys
from typing import Any

import numpy as np

HOSTS, FLOWS, ROUNDS = 200, 10_000, 60
TIMED = """() => {
  window.took = [];
  const before = draw;
  draw = () => { const begin = performance.now(); before(); took.push(performance.now() - begin); };
}"""
CLICK = """() => {
  const button = document.querySelector('#flows th[data-field="flow rate_mbps"] button');
  const begin = performance.now();
  button.click();
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin))));
}"""


def said(times: list[float]) -> str:
    """Milliseconds."""
    low, middle, high = np.quantile(times, [0.1, 0.5, 0.9])
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f}, {len(times)} of them)"


def main() -> None:
    """Measure."""
    from playwright.sync_api import sync_playwright

    from tidegate.view.page import Page

    names = [f"h{number}" for number in range(HOSTS)]
    about: dict[str, Any] = {
        "title": "200 hosts",
        "kind": "running",
        "until_s": 100,
        "nodes": [["s", "switch"], *([name, "host"] for name in names)],
        "links": [[number + 1, 0, f"{name} -> s", ""] for number, name in enumerate(names)],
        "queues": [f"{name} -> s" for name in names],
        "flows": [f"flow {number}" for number in range(FLOWS)],
        "rates_mbps": [1.0] * 2 * HOSTS,
    }
    rng = np.random.default_rng(1)

    def tick(page: Page, number: int) -> None:
        at = (np.arange(1000) + 1000 * number) % FLOWS
        columns = {
            f"flow {name}": rng.random(1000)
            for name in ("rate_mbps", "cwnd_packets", "srtt_ms", "retransmits")
        }
        columns |= {
            f"queue {name}": rng.random(HOSTS) for name in ("rate_mbps", "packets", "delay_ms", "dropped")
        }
        header = {"t": number / 10, "paused": False, "ended": False, "notes": {}}
        page.show(header, {"flow at": at} | columns)

    with Page() as page, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--disable-gpu"])
        made = browser.new_page(viewport={"width": 1280, "height": 900})
        page.begin(about)
        made.goto(page.url)
        tick(page, 0)
        made.wait_for_selector("#flows tbody tr >> nth=39")
        made.evaluate(TIMED)
        for number in range(1, ROUNDS + 1):
            tick(page, number)
            page.heard(0.1)
        drawn = made.evaluate("took")
        clicks = [made.evaluate(CLICK) for _ in range(20)]
        print(f"{browser.version}: a draw {said(drawn)}; a click until sorted rows are there {said(clicks)}")
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
