"""What came of the parts of a batch, as clients with gRPC's own limits of metadata get it; and in which order a write is checked."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tidegate import p4 as programs
from tidegate.p4runtime import Server
from tidegate.p4runtime.conftest import LOOPBACK, Bench, exact
from tidegate.p4runtime.connection import Connection, Refused
from tidegate.p4runtime.errors import (
    IN_BASE64,
    LARGEST_DETAILS,
    MOST_DETAILS,
    ROOM,
    Code,
    P4Error,
    _encoded,
    batch_status,
    details,
    invalid,
    room_of,
)
from tidegate.p4runtime.messages import SERVICE, p4

REFUSED = P4Error(Code.NOT_FOUND, "table `t` has no entry with this match")


@pytest.fixture
def write(bench: Bench) -> Iterator[Any]:
    """`Write` of a client that has set nothing."""
    with grpc.insecure_channel(bench.server.address) as channel:
        yield channel.unary_unary(f"/{SERVICE}/Write")


def update(bench: Bench, key: int) -> Any:
    entry = bench.entry("exact_table", exact(bytes([1, key >> 8, key & 255])), action=bench.action("drop"))
    return p4.Update(type=p4.Update.INSERT, entity=entry)


def outcome(write: Any, updates: list[Any]) -> grpc.RpcError:
    request = p4.WriteRequest(device_id=1, election_id={"low": 1}, updates=updates)
    with pytest.raises(grpc.RpcError) as caught:
        write(request.SerializeToString())
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    return caught.value


@pytest.mark.parametrize(("count", "all_wrong"), [(450, False), (350, True)])
def test_a_client_with_grpc_s_own_limits_sees_all_codes(
    bench: Bench, write: Any, count: int, all_wrong: bool
) -> None:
    """Those of 450 updates if one is refused; of 350 if all are."""
    wrong = update(bench, 0)
    bench.primary.write(("INSERT", wrong.entity))
    updates = [wrong] * count if all_wrong else [wrong, *(update(bench, key) for key in range(1, count))]
    found = details(outcome(write, updates))
    assert [error.canonical_code for error in found] == [0 if one is not wrong else 6 for one in updates]
    # A text that several have is said once.
    assert found[0].message == "table `Work.exact_table` has an entry with this match already"
    assert {error.message for error in found[1:]} == {""}


def test_of_more_it_sees_the_first_and_which_were_refused(bench: Bench, write: Any) -> None:
    wrong = update(bench, 0)
    bench.primary.write(("INSERT", wrong.entity))
    updates = [update(bench, key) for key in range(1, 4096)] + [wrong]
    updates[7] = wrong
    error = outcome(write, updates)
    found = details(error)
    assert 400 < len(found) < 480
    assert [at for at, one in enumerate(found) if one.canonical_code] == [7]
    assert found[7].canonical_code == Code.ALREADY_EXISTS
    said = "2 of 4096 updates were refused (those counted from 0: 7, 4095); details are of the first"
    assert str(error.details()).startswith(f"{said} {len(found)}; the first: table")
    # All others are done.
    assert len(bench.primary.read(bench.entry("exact_table"))) == 4095


def test_our_client_sees_all_errors_with_their_texts(bench: Bench) -> None:
    wrong = update(bench, 0)
    bench.primary.write(("INSERT", wrong.entity))
    with pytest.raises(Refused) as caught:
        bench.primary.write(*[("INSERT", wrong.entity)] * 1000)
    assert len(caught.value.errors) == 1000
    assert {error.message for error in caught.value.errors} == {
        "table `Work.exact_table` has an entry with this match already"
    }


@pytest.mark.parametrize("room", [MOST_DETAILS, IN_BASE64, 500, 20])
@pytest.mark.parametrize("count", [1, 20, 100, 300, 1000, 4096])
@pytest.mark.parametrize("text", ["short", "long " * 500, "ä" * 300])
@pytest.mark.parametrize("same", [True, False])
def test_a_status_has_room(room: int, count: int, text: str, same: bool) -> None:
    errors = [None if at % 3 == 1 else invalid(text if same else f"{at} {text}") for at in range(count)]
    status = batch_status("updates", errors, room)
    given = [p4.Error.FromString(detail.value).canonical_code for detail in status.details]
    assert given == [0 if error is None else 3 for error in errors][: len(given)]
    if room > 500:
        assert status.ByteSize() + len(_encoded(status.message)) <= room
        assert len(given) == count or status.ByteSize() > room - 1000
    assert len(given) < count or "details" not in status.message
    assert p4.Status.FromString(status.SerializeToString()) == status


def test_numbers_of_parts_that_were_refused_are_ranges() -> None:
    errors: list[P4Error | None] = [None] * 2000
    for at in (*range(3), 5, *range(100, 200), 1999):
        errors[at] = REFUSED
    assert "(those counted from 0: 0-2, 5, 100-199, 1999)" in batch_status("requests", errors).message
    errors = [REFUSED if at % 2 else None for at in range(2000)]
    assert ", ...)" in batch_status("requests", errors).message


@pytest.mark.parametrize(
    ("metadata", "room"),
    [
        ((), IN_BASE64),
        ((("user-agent", "grpc-java-netty/1.62.2"),), IN_BASE64),
        ((("user-agent", "grpc-python/1.62.2 grpc-c/39.0.0 (linux; chttp2)"),), MOST_DETAILS),
        ((("user-agent", "grpc-c++/1.60 grpc-c/37.0.0 (linux; chttp2)"), (ROOM, "100000")), 100_000),
        (((ROOM, "9" * 5000),), LARGEST_DETAILS),
        (((ROOM, "-1"),), IN_BASE64),
        (((ROOM, "many"),), IN_BASE64),
    ],
)
def test_how_much_a_client_takes(metadata: tuple[tuple[str, str], ...], room: int) -> None:
    assert room_of(metadata) == room


def test_as_text_the_details_have_room_too() -> None:
    status = batch_status("updates", [REFUSED] * 4096, IN_BASE64)
    assert len(base64.b64encode(status.SerializeToString())) + len(status.message) < 7900


def test_the_order_in_which_a_write_is_checked(everything: programs.Program) -> None:
    with (
        Server(everything.pipeline(), None, address=LOOPBACK) as server,
        Connection(server.address) as primary,
    ):
        primary.next("arbitration")
        wrong: dict[str, Any] = {"atomicity": 7, "updates": [p4.Update()] * 4097}
        for given, code in (
            ({"device_id": 2, "role": "none"}, "NOT_FOUND"),
            ({"device_id": 1, "role": "none"}, "NOT_FOUND"),
            ({"device_id": 1}, "PERMISSION_DENIED"),
            ({"device_id": 1, "election_id": {"low": 1}}, "FAILED_PRECONDITION"),
        ):
            with pytest.raises(Refused) as caught:
                primary.call("Write", p4.WriteRequest(**given, **wrong))
            assert caught.value.code == code
