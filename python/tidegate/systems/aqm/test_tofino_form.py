"""The rule of Tofino's pipeline, from the source: a packet reads and writes each register array at most once, and an array belongs to
ingress or to egress (the paper, section III-A); and no division and no product.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.systems.register_accesses import accesses, operations

FOLDER = Path(__file__).parent


def broken(name: str) -> set[str]:
    """How a program breaks the rule, and where."""
    prefix = "Pi2" if name.startswith("pi2") else "Dual"
    ingress, egress = (accesses(FOLDER / f"{name}.p4", f"{prefix}{gress}") for gress in ("Ingress", "Egress"))
    out = {f"{array} in ingress and egress" for array, _ in ingress for other, _ in egress if array == other}
    for gress, of in (("ingress", ingress), ("egress", egress)):
        out |= {f"{array}: {count} x {what} in {gress}" for (array, what), count in of.items() if count > 1}
    found = {operation[2] for operation in operations(FOLDER / f"{name}.p4")}
    out |= {"products"} if "*" in found else set()
    out |= {"divisions"} if found & {"/", "%"} else set()
    return out


@pytest.mark.parametrize("name", ["pi2_tofino", "dualpi2_tofino"])
def test_a_packet_reads_and_writes_each_array_at_most_once(name: str) -> None:
    assert broken(name) == set()


@pytest.mark.parametrize(
    ("name", "control", "expected"),
    [
        (
            "pi2_tofino",
            "Pi2Egress",
            {("classic_delay", "write"), ("p_coupled", "read"), ("p_squared", "read")},
        ),
        (
            "dualpi2_tofino",
            "DualEgress",
            {("classic_delay", "write"), ("p_coupled", "read"), ("p_squared", "read")},
        ),
    ],
)
def test_all_accesses_are_seen(name: str, control: str, expected: set[tuple[str, str]]) -> None:
    statistics = {("delay_sum", "read"), ("delay_sum", "write")}
    assert set(accesses(FOLDER / f"{name}.p4", control)) == expected | statistics


def test_where_the_programs_of_the_rfc_break_the_rule() -> None:
    """RFC 9332's shared buffer and heads of queues need both queues' state on each side, its recurrence one sum for marks and drops."""
    shared = {
        "backlog in ingress and egress",
        "since in ingress and egress",
        "backlog: 2 x read in ingress",
        "backlog: 2 x read in egress",
        "signals: 2 x read in egress",
        "signals: 2 x write in egress",
        "products",
    }
    assert broken("pi2") == shared
    assert broken("dualpi2") == shared
