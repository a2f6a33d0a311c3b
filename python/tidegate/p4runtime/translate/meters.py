"""Meter configurations (RFC 2698), as P4Runtime has them: units a second, and units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.translate.fields import whole

TWO_RATES, SINGLE_THREE, SINGLE_TWO = 0, 1, 2


def meter_rates(config: Any, spec: Any) -> list[int]:
    """Committed rate and burst, peak rate and burst, as the switch has them: rates in thousandths."""
    values = [config.cir, config.cburst, config.pir, config.pburst]
    if min(values) < 0:
        raise invalid("a meter's rate or burst is negative")
    if spec.type == SINGLE_THREE:
        raise P4Error.unsupported("meters here have two rates (RFC 2698), not an excess burst")
    if config.eburst:
        raise invalid("a meter of this type has no excess burst; leave eburst out")
    if spec.type == SINGLE_TWO and values[:2] != values[2:]:
        raise invalid("a meter of one rate has a peak equal to its committed rate and burst")
    if config.pir < config.cir:
        raise invalid("the peak rate is below the committed rate")
    for rate in values[::2]:
        if rate * 1000 >= 1 << 64:
            raise P4Error(Code.OUT_OF_RANGE, f"a rate of {rate} is more than a meter can count")
    return [config.cir * 1000, config.cburst, config.pir * 1000, config.pburst]


def config_message(rates: tuple[int, int, int, int]) -> Any:
    """`p4.MeterConfig` of rates."""
    cir, cburst, pir, pburst = rates
    return p4.MeterConfig(cir=cir // 1000, cburst=cburst, pir=pir // 1000, pburst=pburst)


def config_of(rates: Sequence[int]) -> Any:
    """`p4.MeterConfig` of an operation's rates, which are in thousandths."""
    if len(rates) != 4:
        raise invalid(f"the rates {list(rates)} are not four whole numbers, or none")
    cir, cburst, pir, pburst = rates
    if pir < cir:
        cure = "it must not be less than the first"
        raise P4Error.about("", "the second rate is the peak rate", field="peak_rate", cure=cure)
    return p4.MeterConfig(
        cir=whole(cir, "a committed rate"), cburst=cburst, pir=whole(pir, "a peak rate"), pburst=pburst
    )


def rates_of(config: Any) -> tuple[int, int, int, int]:
    """The reverse."""
    return config.cir * 1000, config.cburst, config.pir * 1000, config.pburst
