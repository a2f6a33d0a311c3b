"""Congestion controls whose functions the kernel leaves out at times: here, always. See `dctcp.c`."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from live import again_if_disturbed, needs_iperf3, needs_namespaces, needs_prague, watched
from tidegate.hosts import controls
from tidegate.lab import kernel
from tidegate.network import Network


def without(control: str, member: str, folder: Path) -> Path:
    """The control's source with a function that does nothing."""
    source = controls.SOURCES[control]
    text = source.read_text().replace('"kernel.h"', f'"{source.with_name("kernel.h")}"')
    head = f"void {control}_{member}(u64 *arguments)\n{{\n"
    assert text.count(head) == 1
    changed = folder / source.name
    changed.write_text(text.replace(head, f"{head}\treturn;\n"))
    return changed


@needs_namespaces
@needs_iperf3
@needs_prague
@pytest.mark.parametrize("member", ["init", "set_state"])
@pytest.mark.parametrize("control", ["prague", "dctcp"])
@again_if_disturbed
def test_losses_are_reacted_to_and_the_window_grows_again(
    control: str, member: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel.congestion_controls([control]):
        pytest.skip(f"this kernel has a {control} of its own")
    monkeypatch.setitem(controls.SOURCES, control, without(control, member, tmp_path))
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="20 Mbit/s", delay="10 ms", queue="30 packets")
    ecn = "accurate" if control == "prague" else "on"
    net.tcp(a, b, congestion_control=control, ecn=ecn)
    net.record("50 ms")
    result = watched(net.run("6 s", backend="live", progress=False))
    cwnd = result.flow_samples.filter(pl.col("time_s") > 2)["cwnd_packets"]
    # Halved from the 65 packets of link and queue; slow start, which overshoots, was there.
    assert cwnd.min() < 45
    assert cwnd.max() > 55
    assert 20 < result.flows["retransmits"][0] < 160
