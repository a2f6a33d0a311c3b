"""The experiment, shorter."""

from __future__ import annotations

from pathlib import Path

from tidegate import experiments

FILE = Path(__file__).with_name("buffers.py")


def test_longer_queues_make_packets_wait_longer(tmp_path: Path) -> None:
    answer = experiments.run(
        f"{FILE}", {"buffers_bdp": (0.5, 2.0)}, seeds=[1], quick=True, out=tmp_path / "run"
    )
    short, long = answer["rows"]
    assert long["delay_ms_mean"] > 2 * short["delay_ms_mean"] > 0
    assert [claim["holds"] for claim in answer["claims"]] == [True]
    assert (tmp_path / "run" / "figure.png").exists()
