"""What is read out of a run's tables."""

import numpy as np
import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.measures import (
    NO_DELAYS,
    SLACK_S,
    Delays,
    History,
    Noted,
    goodputs_mbps,
    last,
    sampled_delays,
    utilisation,
)
from tidegate.network import Network
from tidegate.results import Result


def notes(*rows: tuple[float, str, float]) -> pl.DataFrame:
    schema = {"time_s": pl.Float64, "quantity": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_notes_are_steps_over_time() -> None:
    noted = Noted(notes((1.0, "count", 10), (2.0, "count", 30), (2.0, "other", 5)))
    assert [noted.at("count", time) for time in (0.5, 1.0, 1.9, 2.0, 9.0)] == [0, 10, 10, 30, 30]
    # By the clock a note comes late.
    assert noted.at("count", 2.0 - SLACK_S / 2) == 30
    assert noted.since("count", 1.0, 2.0) == 20
    assert noted.values("count", 1.0, 2.0).tolist() == [30]
    assert noted.at("unknown", 2.0) == 0
    assert noted.values("unknown", 0.0, 2.0).tolist() == []
    assert last(notes((1.0, "a", 1), (2.0, "a", 7)), "a") == 7


def test_a_history_has_rates_over_windows() -> None:
    # 1 Mbit/s for two seconds, then 3.
    history = History.noted(notes((1.0, "b", 125e3), (2.0, "b", 250e3), (3.0, "b", 625e3)), "b")
    assert history.time_s.tolist() == [0, 1, 2, 3]
    assert history.mbps() == pytest.approx(5 / 3)
    assert history.mbps(2.0) == pytest.approx(3)
    assert history.windows_mbps(1).tolist() == pytest.approx([1, 1, 3])
    assert history.windows_mbps(2, since_s=1.0).tolist() == pytest.approx([2])
    # A window longer than all of it is all of it.
    assert history.windows_mbps(60).tolist() == pytest.approx([5 / 3])


@pytest.mark.parametrize("late", [0.0, 1.01])
def test_one_reading_is_no_rate(late: float) -> None:
    history = History.noted(notes((1.0, "b", 125e3), (2.0, "b", 250e3)), "b")
    assert list(history.windows_mbps(1.0, 1.0)) == [1.0]
    with pytest.raises(TidegateError, match=f"fewer than two readings from {1 + late:g} s on"):
        History(history.time_s[:2], history.bytes[:2]).windows_mbps(1.0, 1 + late)
    with pytest.raises(TidegateError, match="fewer than two"):
        history.mbps(1.5)


def test_quantiles_are_linear_within_a_bin() -> None:
    delays = Delays(np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.5]), 1.25, 100)
    assert [delays.quantile_ms(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)] == [0, 0.5, 1, 2, 3]
    assert NO_DELAYS.quantile_ms(0.99) == 0


@pytest.fixture(scope="module")
def result() -> Result:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="10 Mbit/s", delay="5 ms", queue="50 packets")
    for _ in range(2):
        net.tcp(a, b)
    net.record("50 ms", queues=[link])
    return net.run("6 s")


def test_goodput_use_and_delays_of_a_full_link(result: Result) -> None:
    rates = goodputs_mbps(result, 2, 6)
    assert list(rates) == [0, 1]
    assert sum(rates.values()) == pytest.approx(10 * 1448 / 1514, rel=0.01)
    assert utilisation(result, "a -> b", 2, 6) == pytest.approx(1, abs=0.001)
    delays = sampled_delays(result, "a -> b", 2, 6)
    assert delays.packets == 80
    # 50 packets of 1514 bytes at 10 Mbit/s, and the one on the wire.
    assert 0 < delays.mean_ms < delays.quantile_ms(0.99) <= 51 * 1514 * 8 / 10e3
    with pytest.raises(
        TidegateError, match="there is no sample of a -> b from 7 to 8 s; they are from 0 to 6 s"
    ):
        sampled_delays(result, "a -> b", 7, 8)
    with pytest.raises(TidegateError, match=r"no recorded queue .a->b.: did you mean .a -> b.\? there are"):
        sampled_delays(result, "a->b", 2, 6)
