"""BBRv1 beside CUBIC in deep buffers: as on Linux 6.18, and not as a model of it (docs/simulator.md)."""

from pathlib import Path

import polars as pl
import pytest

from tidegate._core import TidegateError
from tidegate.experiments import replot, run
from tidegate.systems.reference.experiments.bbr_cubic import FRAME_BYTES, model_share, probes


@pytest.mark.parametrize(("depth", "mbps", "rtt_ms"), [(4, 10, 40), (16, 10, 40), (64, 10, 40), (64, 100, 4)])
def test_the_model_s_share_is_where_the_cap_is_what_is_in_flight(depth: int, mbps: int, rtt_ms: int) -> None:
    rate, rtt_s = mbps * 1e6 / 8 / FRAME_BYTES, rtt_ms / 1e3
    queue = depth * rate * rtt_s
    sending = 1 - (queue / rate + 0.2 + rtt_s) / 10
    cubic = 1 - model_share(depth, mbps, rtt_ms) / sending
    rtt_in_probe = (cubic * queue + 4) / rate + rtt_s
    assert 2 * (1 - cubic) * rate * rtt_in_probe == pytest.approx((1 - cubic) * (queue + rate * rtt_s))


def test_the_model_s_share_in_known_cases() -> None:
    # 32 BDP: p = 1/2 - 1/64 - 4 / 1057 = 0.4806, and 1.52 s of ten are lost.
    assert model_share(32, 10, 40) == pytest.approx(0.5194 * 0.848, abs=1e-4)
    # A queue of ten seconds leaves nothing.
    assert model_share(250, 10, 40) == 0


def test_probes_begin_and_end_within_the_samples() -> None:
    cwnd = [4, 4, 90, 90, 4, 4, 4, 80, 4]
    samples = pl.DataFrame({"time_s": [float(i) for i in range(9)], "cwnd_packets": cwnd})
    assert probes(samples) == [(4.0, 7.0)]
    assert probes(samples.head(6)) == []


def test_bbr_has_as_much_as_on_linux_and_less_than_modelled(tmp_path: Path) -> None:
    out = tmp_path / "run"
    answer = run("reference.bbr_cubic", {}, seeds=[1], quick=True, out=out)
    holds = {claim["id"]: claim["holds"] for claim in answer["claims"]}
    assert holds == {"linux-8bdp": True, "model-8bdp": True, "linux-32bdp": True, "model-32bdp": False}
    assert replot(out).read_bytes().startswith(b"\x89PNG")


def test_a_buffer_of_a_few_packets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        TidegateError, match="a buffer of 2 BDP has fewer than 8 packets at 1 Mbit/s and 10 ms"
    ):
        run(
            "reference.bbr_cubic",
            {"rate_mbps": 1, "base_rtt_ms": 10, "buffers_bdp": (2,)},
            seeds=[1],
            out=tmp_path / "run",
        )
