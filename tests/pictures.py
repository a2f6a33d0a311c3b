"""Pictures of the dashboard: a simulation, a finished run and its report, a live run and a switch, wide and narrow, light and dark.

    .venv/bin/python tests/pictures.py OUT [sim finished live switch]

Needs `make extras` and chromium; `live` and `switch` need root. `docs/view.png` is `view.png`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from namespaces import place
from switches import LEARNING
from test_view_packets import ETHERNET, ipv4, tcp
from test_view_real import FLOOD
from viewers import address, browser_in, command, until

WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
RUN = ("run", "reference.dumbbell")


def pictures(browser: Any, url: str, out: Path, name: str, ready: Callable[[Any], object]) -> None:
    """Take those of a page, as soon as it is ready."""
    page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
    page.goto(url)
    ready(page)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            # What is drawn ten times a second has been drawn again.
            page.wait_for_timeout(500)
            file = out / f"{name}-{width}-{scheme}.png"
            page.screenshot(path=file, full_page=True)
            print(file)
    page.close()


def given(*settings: str) -> list[str]:
    return [word for one in settings for word in ("--set", one)]


def sim(browser: Any, out: Path, folder: Path) -> None:
    def ready(page: Any) -> None:
        until(lambda: page.evaluate("history?.['flow rate_mbps'].times.length > 80"))
        page.click("#pause")
        until(lambda: page.inner_text("#state") == "paused")
        page.locator("#flows tbody button").first.click()
        until(lambda: page.is_visible("#traced"))
        page.click("#step")
        until(lambda: page.locator("#packets tbody tr").count())
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)
        clip = {"x": 0, "y": 0, "width": WIDTHS[0], "height": 2000}
        page.screenshot(path=out / "view.png", full_page=True, clip=clip)

    words = given("flows=3", "duration_s=6000")
    with command(*RUN, *words, "--out", folder / "sim", "--view") as process:
        pictures(browser, address(process.stderr), out, "sim", ready)


def finished(browser: Any, out: Path, folder: Path) -> None:
    done = folder / "finished"
    with command(*RUN, *given("flows=1,3,10", "duration_s=10"), "--out", done) as process:
        process.communicate()
    report = f"file://{done / 'report.html'}"
    pictures(browser, report, out, "report", lambda page: page.wait_for_selector(".chart canvas"))
    with command("view", done) as process:
        url = address(process.stdout)
        pictures(browser, url, out, "finished", lambda page: page.wait_for_selector(".chart canvas"))


def live(browser: Any, out: Path, folder: Path) -> None:
    def ready(page: Any) -> None:
        page.locator("#flows tbody button").first.click()
        until(lambda: page.evaluate("header.t > 8"))

    words = given("schemes=fair", "rates_mbps=20", "base_rtts_ms=10", "duration_s=60")
    run = ("run", "meter.rates", "--backend", "live", *words, "--out", folder / "live")
    with command(*run, "--view") as process:
        pictures(browser, address(process.stderr), out, "live", ready)


@contextmanager
def sending(host: Any) -> Iterator[None]:
    """A packet each millisecond or so."""
    over, packet = threading.Event(), ETHERNET + ipv4(6, tcp() + bytes(1000))

    def send() -> None:
        while not over.wait(0.001):
            host.send(packet)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def switch(browser: Any, out: Path, folder: Path) -> None:
    def ready(page: Any) -> None:
        page.locator("#ports tbody button", has_text="p1: received").click()
        until(lambda: page.evaluate("header.t > 8") and page.locator("#seen tbody tr").count())

    (folder / "flood.txt").write_text(FLOOD)
    with place(2) as two:
        there = ("ip", "netns", "exec", two.name)
        words = ("-i", "1@p1", "-i", "2@p2", "--mode", "packet", "--commands", folder / "flood.txt")
        with (
            sending(two.hosts[0]),
            command("switch", LEARNING, *words, "--view", before=there) as process,
            browser_in(browser, two.name, folder) as inside,
        ):
            pictures(inside, address(process.stderr), out, "switch", ready)


def main() -> None:
    """Take them."""
    every = {"sim": sim, "finished": finished, "live": live, "switch": switch}
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        chromium = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=["--disable-gpu", "--no-first-run"])
        for name in sys.argv[2:] or every:
            every[name](browser, out, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
