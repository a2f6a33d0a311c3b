"""Captures of interfaces in namespaces, as dumpcap makes them."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_dumpcap = pytest.mark.skipif(
    shutil.which("dumpcap") is None or shutil.which("ethtool") is None, reason="needs dumpcap and ethtool"
)


def run_in(netns: str, *words: str) -> None:
    subprocess.run(["ip", "netns", "exec", netns, *words], check=True, capture_output=True)


@contextmanager
def captured(netns: str, path: Path, interface: str = "eth", only: str = "tcp") -> Iterator[None]:
    """Packets of a host's interface, in their first 128 bytes, go to a file."""
    words = ["dumpcap", "-q", "-P", "-i", interface, "-s", "128", "-B", "32", "-f", only, "-w", str(path)]
    process = subprocess.Popen(["ip", "netns", "exec", netns, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("File:"):
            break
    else:
        pytest.fail(f"dumpcap did not begin: {said}")
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        said.append(process.communicate(timeout=20)[1])
    assert process.returncode == 0, said
    assert re.search(rf"received/dropped on interface '{interface}': \d+/0 ", said[-1]), said
    # On several processors packets can come to the file some microseconds after later ones. Tools differ in what they make of it.
    by_time = path.with_name(f"sorted-{path.name}")
    subprocess.run(["reordercap", path, by_time], check=True, capture_output=True)
    by_time.replace(path)
