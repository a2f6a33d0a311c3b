"""A fuzzer of the server's messages, in one process and without a network.

    python -m tidegate.p4runtime.fuzzing --seconds 60
    python -m tidegate.p4runtime.fuzzing --round 17

Requests that make sense, requests that are made at random, and both with fields or bytes changed are given to the functions that gRPC
would call. After each of them:

- the answer is OK or has a status that P4Runtime defines, which is neither `INTERNAL` nor, but for a batch whose errors are in its
  details, `UNKNOWN`; nothing else is raised;
- the call has taken less than a second of its thread's processor time, or takes less in a second run of its round: where a virtual
  machine stands still, its processors count that as work;
- the server answers `Capabilities`, and a read of all objects and of the config gives what it gave before if the request was refused.
  If a part was done, a second switch that is given this part alone has the same objects: what was refused has done nothing.

Messages come in rounds, each with switches of its own, so that the number of a round gives all of it again.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError

from tidegate import p4 as programs
from tidegate.control.delivery import Messages
from tidegate.p4runtime.arbitration import Stream
from tidegate.p4runtime.breaking import CANONICAL, Breaker, filled
from tidegate.p4runtime.conftest import CPU, LOOPBACK, TEXT, VRFS, Entities, Simulated
from tidegate.p4runtime.errors import LARGEST_DETAILS, ROOM, P4Error
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.messages import SERVICE, methods, p4, parse_p4info
from tidegate.p4runtime.server import Server

CPU_S = 1.0
"""Processor time of a call's thread."""
MESSAGES = 250
"""Of a round."""
SMALL = Limits(
    updates=4, updates_at_once=3, cells=70, requests=30, roles=2, messages_per_stream=4, source_bytes=8000
)
"""Limits that are reached soon; what is there can be read."""
PEER = "ipv4:127.0.0.1:1"
ABORTED = 10
# All cells are read after each message.
PROGRAM = TEXT.replace("register<bit<48>>(65536) cells;", "register<bit<48>>(64) cells;")
OTHER = (
    PROGRAM.replace("size = 64; }", "size = 32; }", 1)
    .replace("table keyless {", "table no_keys {")
    .replace("keyless.apply();", "no_keys.apply();")
)


class Fault(Exception):
    """What the server should not have done."""


class TooLong(Fault):
    """A call that took more processor time than `CPU_S`."""


class Context:
    """What gRPC tells a call, and is told by it."""

    def __init__(self, peer: str = PEER) -> None:
        self._peer = peer
        self.code = 0
        self.details = ""
        self.trailing: dict[str, Any] = {}

    def peer(self) -> str:
        return self._peer

    def peer_identities(self) -> None:
        return None

    def is_active(self) -> bool:
        return True

    def cancel(self) -> None: ...

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return ((ROOM, str(LARGEST_DETAILS)),)

    def add_callback(self, _: Callable[[], object]) -> bool:
        return True

    def set_trailing_metadata(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self.trailing = dict(pairs)

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        self.code, self.details = code.value[0], details
        # As gRPC does, which tells it from other exceptions by its type alone.
        raise Exception


@dataclass
class Outcome:
    """What came of a call."""

    code: int
    details: str = ""
    errors: list[Any] = field(default_factory=list)
    """Of each part of a batch that was refused: `p4.Error`."""
    answers: list[Any] = field(default_factory=list)

    @property
    def codes(self) -> list[int]:
        return [error.canonical_code for error in self.errors]


@contextmanager
def within(what: str) -> Iterator[None]:
    """Processor time that this thread takes."""
    began = time.thread_time()
    yield
    taken = time.thread_time() - began
    if taken > CPU_S:
        raise TooLong(f"{what} took {taken:.2f} s of processor time")


class Subject:
    """A server in front of a switch, whose clock goes on when it is told so, and its primary."""

    def __init__(self, program: programs.Program, kind: str, limits: Limits) -> None:
        self._simulated = Simulated(program)
        alone = program.pipeline() if kind == "pipeline" else None
        self.server = Server(
            self._simulated.api if alone is None else alone,
            None if kind == "no program" else program,
            address=LOOPBACK,
            translations=VRFS,
            limits=limits,
        )
        found = self.server._handlers()
        self._handlers: dict[str, Any] = {}
        for method in methods():
            path = SimpleNamespace(method=f"/{SERVICE}/{method.name}", invocation_metadata=())
            handler: Any = found.service(path)
            self._handlers[method.name] = handler
        self.server._messages.listen(self)
        self._now = 0
        self.failed: Exception | None = None
        self.lead()

    def close(self) -> None:
        self.server.stop()

    def deliver(self, messages: Messages) -> None:
        """What the switch has for controllers: whoever hands it over only logs errors."""
        try:
            self.server.deliver(messages)
        except Exception as error:
            self.failed = error
            raise

    def goes_on(self) -> None:
        """Packets run, and messages come to controllers."""
        self._now += 1_000_000_000
        self._simulated._core.run_until(self._now)
        self.server.poll()
        if self.failed is not None:
            raise Fault("messages to controllers were lost") from self.failed
        self.said()

    def lead(self) -> None:
        """Be primary of the default role, whatever elections there were."""
        self.server.reset_elections()
        self.server._arbitration.streams.clear()
        self.primary = Stream(peer=PEER)
        self.server._arbitration.join(self.primary)
        hello = p4.StreamMessageRequest(arbitration={"device_id": 1, "election_id": {"low": 1}})
        self.server._hear(self.primary, hello.SerializeToString())

    @property
    def leads(self) -> bool:
        arbitration = self.server._arbitration
        role = arbitration._roles[""]
        return (
            role.primary is self.primary
            and self.primary.election == (0, 1)
            and arbitration.streams == [self.primary]
            and list(arbitration._roles) == [""]
        )

    def said(self) -> list[Any]:
        """Messages that wait for the primary."""
        waiting = self.primary._waiting
        found = [message for message, _ in waiting]
        waiting.clear()
        self.primary._bytes = 0
        return found

    def call(self, name: str, data: bytes) -> Outcome:
        """What comes of a request's bytes."""
        context = Context()
        answers: list[Any] = []
        with within(name):
            try:
                for answer in self._handlers[name].stream_stream(iter([data]), context):
                    answers.append(answer)
            except Exception as error:
                if type(error) is not Exception or not context.code:
                    raise Fault(f"{name} raised {error!r}") from error
        errors = []
        if "grpc-status-details-bin" in context.trailing:
            for detail in p4.Status.FromString(context.trailing["grpc-status-details-bin"]).details:
                errors.append(p4.Error())
                detail.Unpack(errors[-1])
        return Outcome(context.code, context.details, errors, answers)

    def hear(self, data: bytes) -> Outcome:
        """What comes of a message on the primary's stream; the stream ends with an error that is of all of it."""
        self.said()
        with within("StreamChannel"):
            try:
                self.server._hear(self.primary, data)
            except P4Error as error:
                return Outcome(error.code, error.message)
            except Exception as error:
                raise Fault(f"StreamChannel raised {error!r}") from error
        return Outcome(0, errors=[said.error for said in self.said() if said.HasField("error")])

    def stream(self, *data: bytes) -> Outcome:
        """What comes of a stream of its own."""
        context = Context("ipv4:127.0.0.1:2")
        said: list[Any] = []
        try:
            for message in self._handlers["StreamChannel"].stream_stream(iter(data), context):
                said.append(message)
        except Exception as error:
            if type(error) is not Exception or not context.code:
                raise Fault(f"StreamChannel raised {error!r}") from error
        return Outcome(
            context.code, context.details, [one.error for one in said if one.HasField("error")], said
        )

    def state(self) -> tuple[Any, ...]:
        """All that can be read."""
        kinds = [f.name for f in p4.Entity.DESCRIPTOR.fields if f.name != "extern_entry"]
        request = p4.ReadRequest(device_id=1, entities=[p4.Entity(**{kind: {}}) for kind in kinds])
        request.entities.add(table_entry={"is_default_action": True})
        read = self.call("Read", request.SerializeToString())
        found = sorted(
            entity.SerializeToString(deterministic=True)
            for answer in read.answers
            for entity in p4.ReadResponse.FromString(answer).entities
        )
        asked = p4.GetForwardingPipelineConfigRequest(device_id=1)
        config = self.call("GetForwardingPipelineConfig", asked.SerializeToString())
        return read.code, read.details, read.codes, found, config.code, config.answers


class Round:
    """So many messages to one switch, and what was done of them to another one."""

    def __init__(self, number: int, program: programs.Program, limits: Limits | None = None) -> None:
        self.random = Random(number)
        self.kind = self.random.choice(["switch"] * 4 + ["pipeline", "no program"])
        if limits is None:
            limits = self.random.choice([Limits(), SMALL])
        self.entities = Entities(parse_p4info(program.p4info))
        ids = list(self.entities.ids._known.values())
        self.breaker = Breaker(self.random, ids)
        self.tried = Subject(program, self.kind, limits)
        self.second = Subject(program, self.kind, limits)
        self.counted = {"done": 0, "in part": 0, "refused": 0}
        self.last: tuple[str, bytes] = "", b""

    def run(self, messages: int = MESSAGES) -> None:
        """Raises `Fault`."""
        with ExitStack() as held:
            held.callback(self.tried.close)
            held.callback(self.second.close)
            before = self.tried.state()
            for number in range(messages):
                try:
                    before = self._one(number, before)
                except Fault as fault:
                    name, data = self.last
                    raise type(fault)(f"message {number}, {name} {data[:2000].hex()}: {fault}") from fault

    def _one(self, number: int, before: tuple[Any, ...]) -> tuple[Any, ...]:
        setting = 1.5 if self.tried.server._config.committed else 30
        kind = self.random.choices(
            [self.writes, self.reads, self.says, self.streams, self.sets_config, self.gets],
            [52, 16, 10, 10, setting, 2],
        )[0]
        done = kind()
        if number % 20 == 19:
            self.tried.goes_on()
            self.second.goes_on()
            done = True
        if not self.tried.leads:
            self.tried.lead()
            self.second.lead()
        if self.tried.call("Capabilities", b"").code:
            raise Fault("Capabilities was refused")
        after = self.tried.state()
        if not done and after != before:
            raise Fault("a refused request has changed what can be read")
        if done and after != self.second.state():
            raise Fault("what was refused of a request has changed what can be read")
        return after

    # Requests.

    def bytes_of(self, message: Any) -> bytes:
        """Mostly broken."""
        if self.random.random() < 0.08:
            message.Clear()
            self.breaker.fills(message)
        for _ in range(self.random.choice([0, 0, 1, 1, 1, 2, 3])):
            self.breaker.breaks(message)
        data: bytes = message.SerializeToString()
        if self.random.random() < 0.2:
            for _ in range(self.random.choice([1, 1, 3])):
                data = self.breaker.wire(data)
        # gRPC takes no larger ones.
        return data if len(data) <= Limits().message_bytes else b""

    def asked(self, name: str, data: bytes) -> Outcome:
        """What comes of a request, whose status is one that there is."""
        self.last = name, data
        outcome = self.tried.call(name, data)
        self.judge(outcome, name in ("Write", "Read"))
        return outcome

    def judge(self, outcome: Outcome, batch: bool) -> None:
        if wrong := set(outcome.codes) - CANONICAL - {0, ABORTED}:
            raise Fault(f"an error has code {wrong}")
        in_batch = batch and outcome.code == 2 and any(outcome.codes)
        if outcome.code not in CANONICAL | {0, ABORTED} and not in_batch:
            raise Fault(f"status {outcome.code}: {outcome.details}")
        self.counted["refused" if outcome.code or outcome.errors else "done"] += 1

    def again(self, outcome: Outcome) -> None:
        """It is of the second switch, which was given what the first one has done."""
        if outcome.code or outcome.errors:
            raise Fault(f"what was done is refused by a second switch: {outcome.code} {outcome.details}")

    def writes(self) -> bool:
        """Some updates; whether any was done."""
        good = filled(self.entities)
        request = p4.WriteRequest(device_id=1, election_id={"low": 1})
        request.atomicity = self.random.choice([0, 0, 0, 1, 2])
        for entity in self.random.sample(good, self.random.choice([1, 1, 2, 3, 6])):
            broken = request.updates.add(type=self.random.choice([1, 2, 2, 3]), entity=entity)
            for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
                self.breaker.breaks(broken)
        data = self.bytes_of(request) if self.random.random() < 0.2 else request.SerializeToString()
        outcome = self.asked("Write", data)
        if outcome.code and not outcome.errors:
            return False
        parsed = p4.WriteRequest.FromString(data)
        if outcome.errors:
            if len(outcome.errors) != len(parsed.updates):
                raise Fault(f"{len(outcome.errors)} errors of {len(parsed.updates)} updates")
            kept = [u for u, code in zip(parsed.updates, outcome.codes, strict=True) if not code]
            if kept and parsed.atomicity:
                raise Fault("a batch that is done whole was done in part")
            del parsed.updates[:]
            parsed.updates.extend(kept)
            if not kept:
                return False
            self.counted["in part"] += 1
            data = parsed.SerializeToString()
        self.again(self.second.call("Write", data))
        return True

    def reads(self) -> bool:
        request = p4.ReadRequest(device_id=1)
        request.entities.extend(self.random.sample(filled(self.entities), 3))
        for entity in request.entities:
            for _ in range(self.random.randrange(3)):
                self.breaker.breaks(entity)
        data = self.bytes_of(request) if self.random.random() < 0.5 else request.SerializeToString()
        for answer in self.asked("Read", data).answers:
            p4.ReadResponse.FromString(answer)
        return False

    def gets(self) -> bool:
        request = p4.GetForwardingPipelineConfigRequest(device_id=1, response_type=self.random.randrange(4))
        self.asked("GetForwardingPipelineConfig", self.bytes_of(request))
        self.asked("Capabilities", self.bytes_of(p4.CapabilitiesRequest()))
        return False

    def sets_config(self) -> bool:
        request = p4.SetForwardingPipelineConfigRequest(
            device_id=1, election_id={"low": 1}, action=self.random.choice([1, 2, 3, 3, 4, 5])
        )
        if request.action != request.COMMIT or self.random.random() < 0.2:
            request.config.p4info.CopyFrom(self.entities.ids.info)
            request.config.cookie.cookie = self.random.randrange(3)
        # The one that runs if it is empty; others take a process each.
        if self.random.random() < 0.15 or (self.kind == "no program" and self.random.random() < 0.6):
            text = self.random.choice([PROGRAM, PROGRAM, OTHER]).encode()
            if self.random.random() < 0.4:
                text = self.breaker.wire(text)
            request.config.p4_device_config = text
        data = self.bytes_of(request) if self.random.random() < 0.5 else request.SerializeToString()
        if self.asked("SetForwardingPipelineConfig", data).code:
            return False
        self.again(self.second.call("SetForwardingPipelineConfig", data))
        return True

    def said(self) -> Any:
        """A message of a stream that makes sense."""
        packet = {
            "payload": bytes(6) + self.random.randbytes(6) + b"\x88\xb5" + self.random.randbytes(30),
            "metadata": [
                {"metadata_id": 1, "value": bytes([self.random.choice([1, CPU])])},
                {"metadata_id": 2, "value": b"\0"},
            ],
        }
        rules = p4.Struct()
        rules.fields["objects"].list_value.values.add(string_value=self.random.choice(["*", "cells", "["]))
        rules.fields["packet_out"].bool_value = True
        role = p4.Role(name=self.random.choice(["", "", "monitor", "7"]))
        if self.random.random() < 0.3:
            role.config.Pack(rules)
        return self.random.choice(
            [
                p4.StreamMessageRequest(packet=packet),
                p4.StreamMessageRequest(packet=packet),
                p4.StreamMessageRequest(
                    digest_ack={"digest_id": self.entities.ids("seen_t"), "list_id": self.random.randrange(3)}
                ),
                p4.StreamMessageRequest(other={"type_url": "a/b", "value": b"c"}),
                p4.StreamMessageRequest(
                    arbitration={
                        "device_id": 1,
                        "role": role,
                        "election_id": {"low": self.random.randrange(4)},
                    }
                ),
            ]
        )

    def says(self) -> bool:
        """A message on the primary's stream."""
        data = self.bytes_of(self.said())
        self.last = "StreamChannel", data
        outcome = self.tried.hear(data)
        self.judge(outcome, batch=False)
        if outcome.code or outcome.errors:
            return False
        self.again(self.second.hear(data))
        return True

    def streams(self) -> bool:
        """A stream of its own, with an election and another message."""
        hello = p4.StreamMessageRequest(arbitration={"device_id": 1, "election_id": {"low": 5}})
        data = [self.bytes_of(self.said()) for _ in range(self.random.randrange(1, 3))]
        if self.random.random() < 0.6:
            data.insert(0, hello.SerializeToString())
        self.last = "StreamChannel", data[-1]
        outcome = self.tried.stream(*data)
        self.judge(outcome, batch=False)
        if outcome.code or outcome.errors:
            # Of several messages one may have been done.
            sound = [one for one in data if _is_packet(one)]
            if not sound:
                return False
        self.second.stream(*data)
        return True


def _is_packet(data: bytes) -> bool:
    try:
        return bool(p4.StreamMessageRequest.FromString(data).HasField("packet"))
    except DecodeError:
        return False


def main(given: Sequence[str] | None = None) -> int:
    """Rounds for so many seconds, or one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=1, help="number of the first round")
    parser.add_argument("--round", type=int, help="this one alone")
    asked = parser.parse_args(given)
    program = programs.Program.from_text(PROGRAM)
    until = time.monotonic() + asked.seconds
    number = first = asked.first if asked.round is None else asked.round
    messages = 0
    while True:
        one = Round(number, program)
        try:
            try:
                one.run()
            except TooLong as late:
                print(f"round {number}: {late}; once more", file=sys.stderr)
                one = Round(number, program)
                one.run()
        except Fault as fault:
            print(f"round {number} ({one.kind}): {fault}", file=sys.stderr)
            print(f"again: python -m tidegate.p4runtime.fuzzing --round {number}", file=sys.stderr)
            traceback.print_exception(fault)
            return 1
        messages += MESSAGES
        if asked.round is not None or time.monotonic() > until:
            print(f"messages: {messages} of {number - first + 1} rounds, no fault")
            return 0
        number += 1


if __name__ == "__main__":
    threading.excepthook = lambda given: sys.exit(f"a thread raised {given.exc_value!r}")
    sys.exit(main())
