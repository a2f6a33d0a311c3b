"""The marker: what is marked, and what is not."""

from __future__ import annotations

import pytest

from tidegate import TidegateError, scenarios
from tidegate.measures import last

from .controller import MarkerController
from .experiments.threshold import PORT, bottleneck
from .setup import scheme


def test_marks_take_the_place_of_a_long_queue() -> None:
    result = bottleneck(2.0).run("5 s")
    assert last(result.notes, f"port_{PORT}_marked_packets") > 50
    assert result.queue_samples["dropped"].to_numpy().max() == 0
    assert result.queue_samples["queue_delay_ms"].to_numpy()[-50:].mean() < 4


def test_what_is_not_ecn_capable_stays_as_it_is() -> None:
    net = bottleneck(2.0)
    net.flows.clear()
    net.udp(net.nodes[0], net.nodes[1], rate="60 Mbit/s")
    result = net.run("2 s")
    assert last(result.notes, f"port_{PORT}_forwarded_packets") > 1000
    assert last(result.notes, f"port_{PORT}_marked_packets") == 0


def test_it_keeps_the_queue_short_in_a_scenario() -> None:
    access = scenarios.SCENARIOS["access"]
    means = [
        scenarios.network(access, one).run("4 s").queues["queue_delay_ms_mean"].to_numpy().max()
        for one in (scheme, scenarios.SCHEMES["fifo"])
    ]
    assert 0 < means[0] < means[1] / 2


def test_a_threshold_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(TidegateError, match="the threshold of port 1 is 0 us; give one from 1 us"):
        MarkerController({1: 0}, dict)
