"""Messages that make no sense: a canonical error, nothing changed, and the connection alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate import p4 as programs
from tidegate.p4runtime.breaking import CANONICAL, Breaker, filled
from tidegate.p4runtime.conftest import TEXT, Bench
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.messages import SERVICE, methods, p4

pytestmark = pytest.mark.slow

TESTED = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module")
def shared(everything: programs.Program) -> Iterator[Bench]:
    with Bench(everything) as made:
        yield made


def state(bench: Bench) -> Any:
    """All that can be read, and all cells."""
    kinds = [f.name for f in p4.Entity.DESCRIPTOR.fields if f.name not in ("extern_entry", "register_entry")]
    asked = [p4.Entity(**{kind: {}}) for kind in kinds]
    # Of the same kind, the default entries too.
    asked.append(p4.Entity(table_entry={"is_default_action": True}))
    read = sorted(e.SerializeToString(deterministic=True) for e in bench.primary.read(*asked))
    cells = (
        bench.pipeline.register_read("cells").tobytes(),
        bench.pipeline.register_read("signed_cells").tobytes(),
    )
    return read, cells


def outcome(call: Callable[[], object]) -> Refused | None:
    """How a call was refused, if it was."""
    try:
        call()
    except Refused as refused:
        return refused
    return None


def alive(bench: Bench) -> None:
    assert len(bench.primary.read(p4.Entity(counter_entry={"counter_id": bench.ids("packets")}))) == 8


@TESTED
@given(seed=SEEDS)
def test_writes(shared: Bench, seed: int) -> None:
    random = Random(seed)
    breaker = Breaker(random, list(shared.ids._known.values()))
    good = filled(shared)
    updates = []
    for entity in random.sample(good, random.randrange(1, 6)):
        broken = p4.Update(type=random.choice([1, 1, 2, 3]), entity=entity)
        for _ in range(random.randrange(3)):
            breaker.breaks(broken)
        updates.append(broken)
    before = state(shared)
    request = p4.WriteRequest(device_id=1, election_id={"low": 1}, updates=updates)
    refused = outcome(lambda: shared.primary.call("Write", request))
    if refused is not None:
        assert refused.code == "UNKNOWN", refused
        codes = [error.canonical_code for error in refused.errors]
        assert len(codes) == len(updates), refused
        assert {code for code in codes if code} <= CANONICAL, refused.errors
        if all(codes):
            assert state(shared) == before
    alive(shared)


@settings(TESTED, max_examples=60)
@given(seed=SEEDS)
def test_reads(shared: Bench, seed: int) -> None:
    random = Random(seed)
    breaker = Breaker(random, list(shared.ids._known.values()))
    asked = random.sample([e for e in filled(shared) if not e.HasField("register_entry")], 3)
    for entity in asked:
        for _ in range(random.randrange(1, 4)):
            breaker.breaks(entity)
    refused = outcome(lambda: shared.primary.read(*asked))
    if refused is not None:
        assert refused.code == "UNKNOWN", refused
        assert {error.canonical_code for error in refused.errors} <= CANONICAL | {0}, refused.errors
    alive(shared)


@settings(TESTED, max_examples=100)
@given(data=st.binary(max_size=60))
def test_bytes_that_are_no_message(shared: Bench, data: bytes) -> None:
    before = state(shared)
    for method in methods():
        if method.name == "StreamChannel":
            continue
        channel = shared.primary._channel
        make = channel.unary_stream if method.name == "Read" else channel.unary_unary
        call = make(f"/{SERVICE}/{method.name}", request_serializer=bytes, response_deserializer=bytes)
        refused = None
        try:
            answer = call(data, timeout=20)
            if method.name == "Read":
                list(answer)
        except grpc.RpcError as error:
            refused = Refused(error)
        if refused is not None:
            code = grpc.StatusCode[refused.code].value[0]
            assert code in CANONICAL or (code == 2 and "refused" in str(refused)), refused
    assert state(shared) == before
    alive(shared)


@settings(TESTED, max_examples=100)
@given(seed=SEEDS)
def test_messages_of_a_stream(shared: Bench, seed: int) -> None:
    """The stream goes on, whatever is said after its first election."""
    random = Random(seed)
    breaker = Breaker(random, list(shared.ids._known.values()))
    packet = {
        "payload": b"abc",
        "metadata": [{"metadata_id": 1, "value": b"\x01"}, {"metadata_id": 2, "value": b"\0"}],
    }
    for message in (
        p4.StreamMessageRequest(packet=packet),
        p4.StreamMessageRequest(digest_ack={"digest_id": shared.ids("seen_t"), "list_id": 1}),
        p4.StreamMessageRequest(other={"type_url": "a/b", "value": b"c"}),
        p4.StreamMessageRequest(),
    ):
        for _ in range(random.randrange(3)):
            breaker.breaks(message)
        if message.WhichOneof("update") != "arbitration":
            shared.primary.send(message)
    shared.primary.arbitrate(1)
    assert shared.primary.next("arbitration").status.code == 0
    alive(shared)


@settings(TESTED, max_examples=25)
@given(cut=st.integers(0, 5000), put=st.binary(max_size=8))
def test_programs_that_are_broken(shared: Bench, cut: int, put: bytes) -> None:
    before = shared.primary.get_config()
    text = TEXT.encode()
    at = cut % len(text)
    config = p4.ForwardingPipelineConfig(
        p4info=before.p4info, p4_device_config=text[:at] + put + text[at + 40 :]
    )
    refused = outcome(lambda: shared.primary.set_config("VERIFY", config))
    assert refused is None or refused.code == "INVALID_ARGUMENT", refused
    assert shared.primary.get_config() == before
    alive(shared)


def test_a_stream_that_says_bytes_that_are_no_message(shared: Bench) -> None:
    channel = shared.primary._channel
    call = channel.stream_stream(
        f"/{SERVICE}/StreamChannel",
        request_serializer=bytes,
        response_deserializer=p4.StreamMessageResponse.FromString,
    )
    hello = p4.StreamMessageRequest(arbitration={"device_id": 1})
    answers = call(iter([hello.SerializeToString(), b"\xff\xff", b"\x0a\xff"]))
    assert next(answers).WhichOneof("update") == "arbitration"
    assert [next(answers).error.canonical_code for _ in range(2)] == [3, 3]
    alive(shared)


def test_classes_of_messages_are_held() -> None:
    """Protobuf crashes where a class is collected in one thread and used in another."""
    held = {one.DESCRIPTOR.full_name for one in p4.classes}
    assert {"p4.v1.FieldMatch.Exact", "p4.v1.Entity", "google.rpc.Status", "google.protobuf.Any"} <= held
    kinds = [weakref.ref(type(p4.TableEntry().match.add().exact)), weakref.ref(type(p4.Error().details))]
    gc.collect()
    assert all(kind() is not None for kind in kinds)
