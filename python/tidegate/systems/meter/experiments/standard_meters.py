"""The meters to compare with (`standard.p4`): RFC 2697, RFC 2698 (in P4, or v1model's own), or a shaped queue for each flow."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate import units
from tidegate.control import Controller, Port, Queue, Shaper, SwitchApi
from tidegate.systems.meter.controller import FRAME_BYTES, SCALE, Meter, table_entry, target_rate

MTU = 1500
FRAME = MTU + FRAME_BYTES


class StandardMeters(Controller):
    """The meters to compare with (`standard.p4`): RFC 2697, RFC 2698 (in P4, or v1model's own), or a shaped queue for each flow."""

    clock = "1 us"

    def __init__(self, meters: Sequence[Meter], *, ports: dict[str, int], scheme: str, burst: int) -> None:
        self._meters = meters
        self._ports = ports
        self._scheme = scheme
        self._burst = burst

    def start(self, switch: SwitchApi) -> None:
        """Fill tables and buckets."""
        for address, port in self._ports.items():
            switch.table_add("forward", [address], "to_port", [port])
        burst = self._burst * SCALE
        for meter in self._meters:
            number, rate = meter.number, target_rate(meter)
            for register, value in (("cir", rate), ("pir", rate)):
                switch.register_write(register, [value], number)
            for register in ("tc", "te", "tp"):
                switch.register_write(register, [burst], number)
            switch.register_write("updated", [switch.now // 1_000_000], number)
            # RFC 2697 with all of the burst committed; RFC 2698 with two equal rates and bursts, as the paper's baseline.
            way, values = {
                "rfc2697": ("rfc2697", [burst, 0]),
                "rfc2698": ("rfc2698", [burst, burst]),
                "v1model": ("v1model_meter", []),
                "shaper": ("shape", [number]),
            }[self._scheme]
            switch.table_add("meters", [number], way, values)
            if self._scheme == "v1model":
                # It counts frames; the rate and the burst are of IP.
                switch.meter_set(
                    "frames",
                    number,
                    committed_rate=round(units.rate(meter.target) * FRAME / MTU),
                    committed_burst=round(self._burst * FRAME / MTU),
                )
            for table, key in map(table_entry, meter.matches):
                switch.table_add(table, key, "use", [number])


def shaped_port(targets_mbps: Sequence[int], mtu: int = 1500) -> Port:
    """A queue for each flow, which lets full packets through at its rate; a shaper counts frames, the target is of IP."""
    frame = mtu + FRAME_BYTES
    rates = [round(mbps * 1_000_000 * frame / mtu) for mbps in targets_mbps]
    return Port(tuple(Queue(packets=1000, shaper=Shaper(rate, frame)) for rate in rates))
