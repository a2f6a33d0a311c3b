"""`tidegate stf`."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES, ROOT, Run

ROUTER = EXAMPLES / "ipv4_router" / "ipv4_router.p4"
TESTS = sorted([*EXAMPLES.glob("*/*.stf"), *(ROOT / "python" / "tidegate" / "systems").glob("*/*.stf")])
ETHERNET = "000000000001 000000000002 0800"
PACKET = f"{ETHERNET} 4500001c00000000401164cd0a0000010a010203 1111222233334444"
LEAVES = "020000000004 020000000003 0800 4500001c000000003f1165cd0a0000010a010203 1111222233334444"
ROUTE = "add routes hdr.ipv4.dst:0x0a010000/16 next_hop(port:3, src:0x020000000003, dst:0x020000000004)"


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_register_s_cell_is_checked(tidegate: Run, tmp_path: Path, engine: str) -> None:
    monitor = next(test for test in TESTS if test.stem == "monitor").with_suffix(".p4")
    test = tmp_path / "t.stf"
    test.write_text(
        "register_write idle_time 0 7\ncheck_register idle_time(0) == 7\ncheck_register idle_time(0) > 7\n"
    )
    ran = tidegate("stf", monitor, test, "--engine", engine)
    assert ran.code == 1
    assert "t.stf:3: register idle_time(0) has 7, expected > 7" in ran.err
    assert "t.stf:2" not in ran.err
    test.write_text("check_register idle_time(1) == 7\n")
    assert "has 1 cells; 1 is out of range" in tidegate("stf", monitor, test, "--engine", engine).err


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("test", TESTS, ids=lambda p: p.stem)
def test_programs_pass(tidegate: Run, test: Path, engine: str) -> None:
    ran = tidegate("stf", test.with_suffix(".p4"), test, "--engine", engine)
    assert (ran.code, ran.err) == (0, "")
    assert "passed" in ran.out


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([ROUTE, f"packet 1 {PACKET}", f"expect 3 {LEAVES.replace('3f', '40')}"], "differs from byte 22"),
        ([ROUTE, f"packet 1 {PACKET}", f"expect 3 {LEAVES} 00"], "too short"),
        ([ROUTE, f"packet 1 {PACKET}", f"expect 3 {LEAVES[:-4]} $"], "too long"),
        ([ROUTE, f"packet 1 {PACKET}", f"expect 3 {LEAVES}", "expect 3"], "did not come"),
        ([f"packet 1 {PACKET}", "expect 3"], "did not come"),
        ([ROUTE, f"packet 1 {PACKET}", f"packet 3 {ETHERNET}"], "not expected"),
        ([ROUTE, f"packet 1 {PACKET}", "no_packet"], "not expected"),
    ],
)
def test_expectations_that_fail(tidegate: Run, tmp_path: Path, lines: list[str], message: str) -> None:
    test = tmp_path / "t.stf"
    test.write_text("\n".join(lines))
    for engine in ("interp", "jit"):
        ran = tidegate("stf", ROUTER, test, "--json", "--engine", engine)
        assert ran.code == 1
        assert not ran.json["ok"]
        assert any(message in failure["what"] for failure in ran.json["failures"])
        assert f"{test}:" in ran.err


def test_a_difference_is_marked(tidegate: Run, tmp_path: Path) -> None:
    test = tmp_path / "t.stf"
    test.write_text(f"{ROUTE}\npacket 1 {PACKET}\nexpect 3 {LEAVES.replace('3f', '40')}\n")
    lines = tidegate("stf", ROUTER, test).err.splitlines()
    mark = next(line for line in lines if "^" in line).index("^")
    expected = next(line for line in lines if line.startswith("  expected"))
    received = next(line for line in lines if line.startswith("  received"))
    assert (expected[mark], received[mark]) == ("4", "3")
    assert lines[0].startswith(f"{test}:3: port 3")


@pytest.mark.parametrize(
    "lines",
    [
        [ROUTE, f"packet 1 {PACKET}", f"expect 3 {LEAVES}"],
        [ROUTE, f"packet 1 {PACKET}", f"EXPECT 3 {LEAVES[:20]}"],
        [ROUTE, f"packet 1 {PACKET}", f"expect 3 {'*' * 12} {LEAVES[13:]} $"],
        [ROUTE, f"packet 1 {PACKET}", "expect 3"],
        # Ports that the test does not mention are not looked at.
        [ROUTE, f"packet 1 {PACKET}"],
        [f"{ROUTE} = R", "remove R", f"packet 1 {PACKET}", "no_packet"],
        [ROUTE, "remove all", f"packet 1 {PACKET}", "no_packet"],
        ["setdefault routes drop()", "# nothing", "", "wait"],
    ],
)
def test_expectations_that_hold(tidegate: Run, tmp_path: Path, lines: list[str]) -> None:
    test = tmp_path / "t.stf"
    test.write_text("\n".join(lines))
    ran = tidegate("stf", ROUTER, test, "--json")
    assert (ran.code, ran.json["failures"]) == (0, [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("add nowhere k:1 drop()", "no table `nowhere`; there are `RouterIngress.routes`"),
        ("add routes k:1 drop()", "has no key `k`; it has `hdr.ipv4.dst`"),
        ("add routes hdr.ipv4.dst:0x1ffffffff/8 drop()", "does not fit in 32 bits"),
        ("add routes hdr.ipv4.dst:1/33 drop()", "prefix length 33"),
        ("add routes dst:0x0a000000/8 fly()", "no action of table `RouterIngress.routes` `fly`"),
        ("add routes dst:0x0a000000/8 next_hop(port:1)", "needs a value for `src`"),
        ("add routes dst:0x0a000000/8 drop(x:1)", "no parameter `x`; it has none"),
        ("register_write r 0 1", "no register `r`"),
        ("check_register r(0) == 1", "no register `r`"),
        ("check_register r(0)", "expected `check_register NAME(INDEX) ==|!=|<|<=|>|>= NUMBER`"),
        ("packet 0 123", "odd number"),
        ("launch 1", "no statement `launch`"),
    ],
)
def test_bad_lines_are_named(tidegate: Run, tmp_path: Path, line: str, message: str) -> None:
    test = tmp_path / "t.stf"
    test.write_text(f"# first\n{line}\n")
    ran = tidegate("stf", ROUTER, test)
    assert ran.code == 1
    assert ran.err.startswith(f"{test}:2: ")
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_trace(tidegate: Run, tmp_path: Path) -> None:
    test = tmp_path / "t.stf"
    test.write_text(f"{ROUTE}\npacket 1 {PACKET}\nexpect 3 {LEAVES}\n")
    ran = tidegate("stf", ROUTER, test, "--trace")
    assert ran.code == 0
    assert "extract hdr.ipv4" in ran.out
    assert "sent 42 bytes on port 3" in ran.out
    events = tidegate("stf", ROUTER, test, "--trace", "--json").json["trace"][0]["events"]
    assert {"event": "transmit", "port": 3, "bytes": 42} in events


def test_files_that_are_no_tests(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "b.stf").write_bytes(b"wait\n\xff\xfe")
    ran = tidegate("stf", ROUTER, tmp_path / "b.stf")
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert "b.stf:2: this is not text" in ran.err
    assert "it is a directory" in tidegate("stf", ROUTER, tmp_path).err
    assert tidegate("stf", ROUTER, tmp_path / "none.stf").code == 1


KEYS = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> first; bit<8> second; bit<8> mask; bit<8> prefix; bit<8> range; bit<8> maybe; }
struct headers { h_t h; }
struct metadata {}
parser P(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata m) { apply {} }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    action hit() { s.egress_spec = 2; }
    action miss() { mark_to_drop(s); }
    table t {
        key = { hdr.h.first: exact; hdr.h.second: exact; hdr.h.mask: ternary; hdr.h.prefix: lpm; hdr.h.range: range; hdr.h.maybe: optional; }
        actions = { hit; miss; }
        default_action = miss();
    }
    apply { t.apply(); }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply {} }
control C(inout headers hdr, inout metadata m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
FIELDS = ("first", "second", "mask", "prefix", "range", "maybe")
BYTE = st.sampled_from([0, 1, 16, 255]) | st.integers(0, 255)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.dictionaries(st.sampled_from(FIELDS), BYTE),
    digit=st.booleans(),
    packets=st.lists(st.tuples(*[st.none() | BYTE for _ in FIELDS]), min_size=1, max_size=8),
    engine=st.sampled_from(["interp", "jit"]),
)
def test_keys_that_are_not_mentioned_match_anything_and_exact_ones_0(
    tidegate: Run,
    tmp_path: Path,
    said: dict[str, int],
    digit: bool,
    packets: list[tuple[int | None, ...]],
    engine: str,
) -> None:
    """A byte of a packet that is `None` is what the entry says of it, or 0."""
    program, test = tmp_path / "keys.p4", tmp_path / "t.stf"
    program.write_text(KEYS)
    words = dict(said)
    keys = [f"hdr.h.{field}:0x{value:02x}" for field, value in words.items()]
    if digit and "mask" in said:
        # Of a ternary key the digits that are written count.
        keys = [key[:-1] + "*" if "mask" in key else key for key in keys]
    lines = [f"add t 1 {' '.join(keys)} hit()"]
    for packet in packets:
        sent = [
            said.get(field, 0) if byte is None else byte for field, byte in zip(FIELDS, packet, strict=True)
        ]
        lines.append(f"packet 1 {bytes(sent).hex()}")
        due = all(
            (byte ^ said[field]) >> (4 if digit and field == "mask" else 0) == 0
            if field in said
            else field not in ("first", "second") or byte == 0
            for field, byte in zip(FIELDS, sent, strict=True)
        )
        if due:
            lines.append(f"expect 2 {bytes(sent).hex()} $")
    test.write_text("\n".join([*lines, "no_packet"]))
    ran = tidegate("stf", program, test, "--json", "--engine", engine)
    assert (ran.code, ran.json["failures"]) == (0, []), lines
