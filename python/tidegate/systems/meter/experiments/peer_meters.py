"""Peers with fairness inside a meter: BC-PQP (`bcpqp.p4`) and FairPolicer (`fairpolicer.p4`), and the sizes that they are published with.

Sizes are bytes, rates bit/s, all of IP.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.network import FiveTuple
from tidegate.systems.meter.controller import SCALE, Meter, table_entry, target_rate

QUEUES = 64
"""Phantom queues of a meter at most."""
LARGEST = 2**45
"""Above all sizes: in 1/65536 byte, sums of several of them stay below 2^64."""
PACKET = 1500


def steady_bucket(rate_bps: float, rtt_s: float) -> float:
    """M: the bucket that a policer needs for TCP's whole rate, as BC-PQP's sizing script has it (SIGCOMM 2024).

    The larger of what Reno needs, 1500 (BDP / 1500)^2 / 18, and CUBIC, (0.072 / RTT in s) BDP^(4/3), with the BDP in bytes. CUBIC's
    curve counts packets: a cycle whose mean is the rate falls short by 0.036 W^(4/3) / RTT packets (RFC 9438 section 4.2, W the BDP
    in packets). With bytes in it the script asks for 1500^(1/3) = 11.4 times as many bytes as with packets.
    """
    bdp = rate_bps / 8 * rtt_s
    reno = PACKET * (bdp / PACKET) ** 2 / 18
    cubic = 0.072 / rtt_s * bdp ** (4 / 3)
    return float(max(reno, cubic))


def published_queue(rate_bps: float, rtt_s: float) -> int:
    """Q of BC-PQP's phantom queues, 10 M, in bytes."""
    return round(10 * steady_bucket(rate_bps, rtt_s))


def published_bucket(rate_bps: float, rtt_s: float) -> int:
    """FairPolicer's bucket, M, in bytes, as BC-PQP's authors size it."""
    return round(steady_bucket(rate_bps, rtt_s))


class _PeerMeters(Controller, ABC):
    """Writes tables and registers at the start; nothing after that."""

    clock = "1 us"
    most: int
    """How many meters the program has."""
    full: tuple[str, ...] = ()
    """Registers of levels that begin with the whole size."""
    stamp: str
    """The register of the time from which on the rate counts, in microseconds."""

    def __init__(self, meters: Sequence[Meter], *, ports: Mapping[str, int], sizes: Sequence[int]) -> None:
        self._meters = list(meters)
        self._ports = dict(ports)
        self._sizes = list(sizes)
        if len(self._sizes) != len(self._meters):
            raise TidegateError(
                f"there are {len(self._sizes)} sizes for {len(self._meters)} meters; give one each"
            )
        for meter, size in zip(self._meters, self._sizes, strict=True):
            if not 0 <= meter.number < self.most:
                raise TidegateError(
                    f"there is no meter {meter.number}; this program has 0 to {self.most - 1}"
                )
            if not 0 < size < LARGEST:
                raise TidegateError(
                    f"the size of meter {meter.number} is {size} bytes; give 1 to {LARGEST - 1}"
                )
        self._rates = [target_rate(meter) for meter in self._meters]

    def start(self, switch: SwitchApi) -> None:
        """Fill tables and registers."""
        for address, port in self._ports.items():
            switch.table_add("forward", [address], "to_port", [port])
        for meter, size, rate in zip(self._meters, self._sizes, self._rates, strict=True):
            switch.table_add("meters", [meter.number], "configure", self._values(size))
            switch.register_write("rate", [rate], meter.number)
            switch.register_write(self.stamp, [switch.now // 1_000_000], meter.number)
            for register in self.full:
                switch.register_write(register, [size * SCALE], meter.number)
            for table, key in map(table_entry, meter.matches):
                switch.table_add(table, key, "use", [meter.number])
            self._place(switch, meter)

    @abstractmethod
    def _values(self, size: int) -> list[int]:
        """What the action `configure` takes."""

    def _place(self, switch: SwitchApi, meter: Meter) -> None:
        """What is set by flow."""


class BcPqpMeters(_PeerMeters):
    """BC-PQP: `sizes` has Q in bytes for each meter.

    Flows are hashed over `queues` phantom queues, or, with `exact`, have a queue each, so that no two meet: then a meter's matches
    are flows, 64 at most.
    """

    most = 1024
    stamp = "drained"

    def __init__(
        self,
        meters: Sequence[Meter],
        *,
        ports: Mapping[str, int],
        sizes: Sequence[int],
        queues: int = QUEUES,
        exact: bool = False,
    ) -> None:
        super().__init__(meters, ports=ports, sizes=sizes)
        if not 1 <= queues <= QUEUES:
            raise TidegateError(f"a meter with {queues} phantom queues; give 1 to {QUEUES}")
        self._queues = queues
        self._exact = exact
        for meter in self._meters if exact else ():
            flows = sum(isinstance(match, FiveTuple) for match in meter.matches)
            if flows < len(meter.matches) or flows > queues:
                raise TidegateError(
                    f"meter {meter.number} has {flows} flows in {len(meter.matches)} matches; "
                    f"a queue each needs flows alone, up to {queues}; leave `exact` out to hash them"
                )

    def _values(self, size: int) -> list[int]:
        return [size * SCALE, self._queues]

    def _place(self, switch: SwitchApi, meter: Meter) -> None:
        for queue, match in enumerate(meter.matches if self._exact else ()):
            table, key = table_entry(match)
            switch.table_add(table.replace("flows", "places"), key, "at", [queue])


class FairPolicerMeters(_PeerMeters):
    """FairPolicer: `sizes` has the bucket B in bytes for each meter, which is full at the start.

    A flow may occupy tokens / 2^`alpha_shift`.
    """

    most = 64
    stamp = "updated"
    full = ("tokens",)

    def __init__(
        self,
        meters: Sequence[Meter],
        *,
        ports: Mapping[str, int],
        sizes: Sequence[int],
        alpha_shift: int = 0,
    ) -> None:
        super().__init__(meters, ports=ports, sizes=sizes)
        if not 0 <= alpha_shift < 64:
            raise TidegateError(f"alpha_shift is {alpha_shift}; give 0 to 63")
        self._alpha_shift = alpha_shift

    def _values(self, size: int) -> list[int]:
        return [size * SCALE, self._alpha_shift]
