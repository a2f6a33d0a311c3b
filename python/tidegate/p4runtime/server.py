"""A P4Runtime server in front of a switch or a pipeline.

    >>> from tidegate import p4
    >>> from tidegate.p4runtime import Server
    >>> program = p4.compile("router.p4")
    >>> with Server(program.pipeline(), program) as server:
    ...     print(server.address)
    127.0.0.1:9559

What the switch has for controllers comes to them by `poll` (or, from a thread of its own, with `poll_every`).
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Self

import grpc
from google.protobuf.message import DecodeError

from tidegate._core import TidegateError
from tidegate.control import PipelineApi
from tidegate.control.delivery import Distributor, Messages, Turn
from tidegate.logs import logger
from tidegate.p4 import Program
from tidegate.p4runtime.arbitration import Arbitration, Role, Rules, Stream
from tidegate.p4runtime.clients import Call, Clients, client_of
from tidegate.p4runtime.config import Configuration
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.errors import STATUS, Code, P4Error, abort, abort_batch, invalid
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.listening import ADDRESS, Tls, listen, options
from tidegate.p4runtime.messages import SERVICE, methods, p4
from tidegate.p4runtime.running import Large, Nobody, Snapshot, Stopped
from tidegate.p4runtime.sharing import Shares, peers_of
from tidegate.p4runtime.values import Translations

log = logger("tidegate.switch")

VERSION = "1.5.0"
"""Of P4Runtime's specification."""
CLOCK = "tidegate-now"
"""Trailing metadata of `Capabilities`: the switch's time in picoseconds."""

READ_S = 0.5
"""For so long a call of a primary of the default role waits for another client's read, which then ends."""
MOST_ECHOED = 1024
"""Bytes of payload, and of metadata, of a refused packet-out in the error that tells of it."""


class Server:
    """Serves one device."""

    def __init__(
        self,
        api: PipelineApi,
        program: Program | None,
        *,
        address: str = ADDRESS,
        device_id: int = 1,
        tls: Tls | None = None,
        lock: AbstractContextManager[Any] | None = None,
        translations: Translations | None = None,
        poll_every: float | None = None,
        on_program: Callable[[Program], None] = lambda _: None,
        messages: Distributor | None = None,
        limits: Limits | None = None,
        program_limits: Mapping[str, int] | None = None,
        insecure: bool = False,
    ) -> None:
        """Serve `api`, which runs `program`; `None` if a controller is to set one before anything else.

        `lock` is held while the switch is used; the default is for a switch that nobody else uses, or that can be used from any
        thread. Every `poll_every` seconds a thread looks whether the switch has something for controllers. `on_program` is told
        which program a controller has had the switch run. `messages` hands over what the switch has for controllers, if it has
        other control planes too. `program_limits` are the compiler's, by name, for programs that are pushed. `insecure` permits an address that other machines reach without TLS.
        """
        self._limits = limits or Limits()
        self._device = Device(api, lock)
        self._device_id = device_id
        self._messages = Distributor(self._device) if messages is None else messages
        # Held while a call uses the switch, for some tens of milliseconds at most; a call that takes longer gives it back now and then.
        self._busy = self._messages.turn
        # Held by each write, and by each read until it has what it asks for.
        self._writing = Turn()
        self._on_program = on_program
        self._config = Configuration(
            self._device,
            program,
            translations or {},
            self._replaced,
            self._busy,
            self._limits,
            program_limits,
        )
        self._arbitration = Arbitration(device_id, self._limits)
        self._clients = Clients(self._limits, lambda: self._arbitration.primary_peers)
        self._lost: Counter[str] = Counter()
        self._poll_every = poll_every
        self._stopping = threading.Event()
        self._poller: threading.Thread | None = None
        # Streams hold their threads; so do calls whose client takes its time.
        self._pool = ThreadPoolExecutor(self._clients.threads, thread_name_prefix="p4runtime")
        self._server = grpc.server(self._pool, options=options(self._limits))
        self._server.add_generic_rpc_handlers((self._handlers(),))
        try:
            self.address = listen(self._server, address, tls, insecure)
            """Host and port."""
        except TidegateError:
            self._pool.shutdown(wait=False)
            raise
        port = int(self.address.rpartition(":")[2])
        shares = (
            self._limits.connections_per_address,
            self._limits.connections,
            self._limits.connections_spare,
        )
        self._shares = Shares(port, *shares)

    def start(self) -> None:
        """Begin to serve."""
        self._messages.listen(self)
        self._server.start()
        self._clients.start(self._look)
        if self._poll_every is not None:
            self._poller = threading.Thread(target=self._poll_always, name="p4runtime-poll", daemon=True)
            self._poller.start()

    def stop(self) -> None:
        """End all calls and streams."""
        self._stopping.set()
        if self._poller is not None:
            self._poller.join()
        self._clients.stop()
        self._config.close()
        self._messages.leave(self)
        with self._busy:
            for stream in list(self._arbitration.streams):
                stream.fail(P4Error(Code.UNAVAILABLE, "the switch is going down"))
        self._server.stop(grace=1).wait()
        self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def statistics(self) -> dict[str, int]:
        """Open streams, and messages that controllers did not take in time, by kind."""
        with self._busy:
            lost = self._lost + sum((s.dropped for s in self._arbitration.streams), Counter())
            streams = sum(stream.closed is None for stream in self._arbitration.streams)
            return {"streams": streams, **{f"{k}_dropped": v for k, v in lost.items()}}

    def reset_elections(self) -> None:
        """Have all controllers begin anew: end their streams, and forget roles and the highest election ids that there were.

        For an operator, if a controller has used an election id that the others do not reach.
        """
        with self._busy:
            self._arbitration.reset("an operator has reset the elections; open another stream")

    def _look(self) -> None:
        """What is done now and then."""
        with self._busy:
            self._arbitration.end_late()
            streams = {stream.peer for stream in self._arbitration.streams}
            primary = set(self._arbitration.primary_peers)
        self._shares.look(peers_of(self._clients.peers | streams), peers_of(primary))

    def _replaced(self, program: Program) -> None:
        self._messages.forget()
        self._on_program(program)

    # What the switch has for controllers.

    def _poll_always(self) -> None:
        while not self._stopping.wait(self._poll_every):
            try:
                self.poll()
            except Exception:
                # Timeouts go on to be looked at.
                log.error("what the switch has for controllers was not taken:\n%s", traceback.format_exc())

    def poll(self) -> None:
        """Take what the switch has for controllers, and hand it over. To be called now and then, for timeouts too."""
        self._messages.poll()

    def deliver(self, messages: Messages) -> None:
        """Hand over what was taken from the switch, and what timeouts bring."""
        with self._busy:
            running = self._config.committed
            if running is None:
                return
            for name, fields in messages.digests:
                for listed, message in running.digests.offer(name, fields):
                    self._tell("digests", p4.StreamMessageResponse(digest=message), listed)
            for listed, message in running.digests.due():
                self._tell("digests", p4.StreamMessageResponse(digest=message), listed)
            for _, data, more in messages.packets:
                message = p4.StreamMessageResponse(packet=running.packets.packet_in(data, more))
                self._tell("packet_ins", message)
            by_table: dict[str, list[Any]] = {}
            for table, row in messages.idle:
                message = running.idle_message(table, row)
                if message is not None:
                    by_table.setdefault(table, []).append(message)
            for table, entries in by_table.items():
                for at in range(0, len(entries), 1000):
                    notice = p4.IdleTimeoutNotification(
                        table_entry=entries[at : at + 1000], timestamp=time.time_ns()
                    )
                    self._tell(
                        "idle_timeouts", p4.StreamMessageResponse(idle_timeout_notification=notice), table
                    )

    def _tell(self, what: str, message: Any, name: str | None = None) -> None:
        """Sends a message to the primary of each role that it concerns: by an object's name, or of packets."""
        for stream, rules in self._arbitration.primaries():
            if rules.packet_in if name is None else rules.allows(name):
                stream.send(message, what)

    # Calls.

    def _handlers(self) -> grpc.GenericRpcHandler:
        served: dict[str, Callable[..., Any]] = {
            "Write": self._write,
            "SetForwardingPipelineConfig": self._set_config,
            "GetForwardingPipelineConfig": self._get_config,
            "Capabilities": self._capabilities,
        }
        handlers = {}
        for method in methods():
            # All are streams of bytes for gRPC: so a call begins before its request has come, and lasts until its answer is taken.
            if method.name == "StreamChannel":
                made = grpc.stream_stream_rpc_method_handler(
                    self._stream, None, p4.StreamMessageResponse.SerializeToString
                )
            elif method.name == "Read":
                made = grpc.stream_stream_rpc_method_handler(self._guarded(self._read, p4.ReadRequest))
            else:
                request = getattr(p4, method.input_type.name)
                made = grpc.stream_stream_rpc_method_handler(
                    self._guarded(_one(served[method.name]), request)
                )
            handlers[method.name] = made
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _guarded(
        self, served: Callable[..., Iterator[bytes]], message: Any
    ) -> Callable[..., Iterator[bytes]]:
        def guarded(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            try:
                with self._clients.call(context) as call, ExitStack() as held:
                    data = _request(requests, call)
                    held.enter_context(self._clients.room(call, len(data)))
                    for answer in served(_parsed(data, call, message), call):
                        # gRPC takes it when the client has taken what was there before.
                        call.sending = time.monotonic()
                        yield answer
                        call.sending = None
            except Nobody:
                return
            except Exception as error:
                abort(context, _as_error(error))

        return guarded

    def _check_device(self, request: Any) -> None:
        if request.device_id != self._device_id:
            raise P4Error(
                Code.NOT_FOUND, f"there is no device {request.device_id}; this is {self._device_id}"
            )

    def _write(self, request: Any, call: Call) -> Any:
        # The primary of the default role comes before others wherever it waits.
        with self._busy.always_ahead(call.role == ""):
            errors = self._written(request, call)
        if any(error is not None for error in errors):
            abort_batch(call.context, "updates", errors)
        return p4.WriteResponse()

    def _is_whole(self, request: Any) -> bool:
        """Whether a batch is done whole: it is done between two packets, and so atomic for the data plane too."""
        whole = request.atomicity in (p4.WriteRequest.ROLLBACK_ON_ERROR, p4.WriteRequest.DATAPLANE_ATOMIC)
        if not whole and request.atomicity != p4.WriteRequest.CONTINUE_ON_ERROR:
            raise P4Error(Code.INVALID_ARGUMENT, f"there is no atomicity {request.atomicity}")
        if not whole and len(request.updates) > self._limits.updates:
            why = f"{len(request.updates)} updates are too many; give {self._limits.updates} at most in a message"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        return whole

    def _written(self, request: Any, call: Call) -> list[P4Error | None]:
        # In the order of the specification (1.5, "Write RPC").
        with self._busy:
            self._arbitration.check(request)
            self._config.current()
        whole = self._is_whole(request)
        self._clients.give_way(call)
        # One write after another, and no read in the midst of one (specification 1.5, "Parallelism of Read and Write Requests").
        # The primary of the default role does not wait for others' reads but for the one that is under way.
        with self._writing.ahead(call.role == ""):
            with self._busy:
                role = self._arbitration.check(request)
                rules = role.rules
                running = self._config.current()
                # Another primary waits for its end.
                self._arbitration.begin_write(role)

            def demand() -> None:
                if not call.alive():
                    raise Stopped(Code.ABORTED, "nobody waits for the answer any more")

            write = running.write_all if whole else running.write
            try:
                return write(request.updates, rules.allows, demand)
            finally:
                with self._busy:
                    self._arbitration.end_write(role)

    def _read(self, request: Any, call: Call) -> Iterator[bytes]:
        self._check_device(request)
        if len(request.entities) > self._limits.requests:
            why = f"{len(request.entities)} requests are too many; give {self._limits.requests} at most in a message"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        first = call.role == ""
        self._clients.give_way(call)
        with self._busy.ahead(first):
            rules = self._arbitration.rules(request.role)
            running = self._config.current()

        def snapshot(small: bool = False) -> Snapshot:
            with self._busy.always_ahead(first), self._writing.ahead(first):
                until = time.monotonic() + READ_S

                def alive() -> bool:
                    if not first and self._writing.wanted and time.monotonic() > until:
                        why = "a call of the primary waits for this read; ask for less at a time, or again"
                        raise Stopped(Code.ABORTED, why)
                    return call.alive()

                return running.snapshot(request.entities, rules.allows, alive, small)

        try:
            with ExitStack() as held:
                try:
                    found = snapshot(small=True)
                except Large:
                    # It takes memory until the client has it all.
                    held.enter_context(self._clients.place(call))
                    found = snapshot()
                answers = running.answers(found, call.alive)
                while True:
                    self._clients.give_way(call)
                    with call.slot, self._busy.always_ahead(first):
                        answer = next(answers, None)
                    if answer is None:
                        break
                    yield answer
        except Nobody:
            return
        if any(error is not None for error in found.errors):
            abort_batch(call.context, "requests", found.errors)

    def _set_config(self, request: Any, call: Call) -> Any:
        def demand() -> Role:
            role = self._arbitration.check(request)
            if not role.rules.pipeline:
                raise P4Error(Code.PERMISSION_DENIED, "the role may not set the pipeline")
            return role

        with self._busy:
            demand()
        self._config.set(request, demand, client=call.client, first=call.role == "")
        return p4.SetForwardingPipelineConfigResponse()

    def _get_config(self, request: Any, _call: Call) -> Any:
        self._check_device(request)
        return self._config.get(request.response_type)

    def _capabilities(self, _request: Any, call: Call) -> Any:
        call.context.set_trailing_metadata(((CLOCK, str(self._device.now)),))
        return p4.CapabilitiesResponse(p4runtime_api_version=VERSION)

    # Streams.

    def _stream(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
        stream = Stream(
            self._limits.messages_per_stream,
            context.peer(),
            client_of(context),
            self._limits.bytes_per_stream,
            context.cancel,
        )
        try:
            with self._busy:
                self._arbitration.join(stream)
        except P4Error as error:
            abort(context, error)
        context.add_callback(stream.close)
        listener = threading.Thread(
            target=self._listen_to, args=(stream, requests), name="p4runtime-stream", daemon=True
        )
        listener.start()
        try:
            yield from stream
        finally:
            with self._busy:
                self._arbitration.leave(stream)
                self._lost.update(stream.dropped)
        if stream.error is not None:
            context.abort(STATUS[stream.error.code], stream.error.message)

    def _listen_to(self, stream: Stream, requests: Iterator[bytes]) -> None:
        try:
            for data in requests:
                self._hear(stream, data)
        except grpc.RpcError:
            # The controller is gone.
            pass
        except Exception as error:
            # gRPC has no other name for a stream that was broken off.
            if type(error) is not Exception:
                stream.fail(_as_error(error))
        finally:
            stream.close()

    def _hear(self, stream: Stream, data: bytes) -> None:
        request: Any = None
        kind = rules = too_long = None
        most = self._limits.stream_bytes
        if len(data) > most:
            # As a message it may take many times as much, of each stream.
            why = f"a message of {len(data)} bytes is not read; those of a stream have {most} at most"
            too_long = P4Error(Code.RESOURCE_EXHAUSTED, why)
        else:
            try:
                request = p4.StreamMessageRequest.FromString(data)
                kind = request.WhichOneof("update")
            except DecodeError:
                pass
        if kind == "arbitration" and request.arbitration.role.HasField("config"):
            # It takes time, in which others are served.
            rules = Rules.of(request.arbitration.role.config, self._limits)
        with self._busy:
            if stream not in self._arbitration.streams or stream.error is not None:
                # It has ended meanwhile.
                return
            if kind == "arbitration":
                changed = self._arbitration.update(stream, request.arbitration, rules)
                if changed and self._config.committed:
                    self._config.committed.digests.forget_sent()
                return
            if stream.role is None:
                raise P4Error(Code.FAILED_PRECONDITION, "a stream begins with an arbitration update")
            try:
                if request is None:
                    raise too_long or _no_message()
                self._hear_primary(stream, kind, request)
            except (P4Error, TidegateError) as error:
                code = error.code if isinstance(error, P4Error) else Code.FAILED_PRECONDITION
                wrong = p4.StreamError(canonical_code=code, message=str(error), space="tidegate")
                if kind == "packet":
                    _echo(request.packet, wrong.packet_out.packet_out)
                elif kind == "digest_ack":
                    echoed = wrong.digest_list_ack.digest_list_ack
                    echoed.digest_id, echoed.list_id = (
                        request.digest_ack.digest_id,
                        request.digest_ack.list_id,
                    )
                else:
                    wrong.other.SetInParent()
                stream.send(p4.StreamMessageResponse(error=wrong), "errors")

    def _hear_primary(self, stream: Stream, kind: str | None, request: Any) -> None:
        rules = self._arbitration.primary_rules(stream)
        if rules is None:
            raise P4Error(Code.PERMISSION_DENIED, "the controller is not primary")
        running = self._config.committed
        if running is None:
            raise P4Error(Code.FAILED_PRECONDITION, "no program is set")
        if kind == "packet":
            if not rules.packet_out:
                raise P4Error(Code.PERMISSION_DENIED, "the role may not send packets")
            self._device.packet_out(running.packets.packet_out(request.packet))
        elif kind == "digest_ack":
            running.digests.acknowledge(request.digest_ack)
        else:
            raise invalid("this kind of stream message is not supported")


def _one(served: Callable[..., Any]) -> Callable[..., Iterator[bytes]]:
    """A call with one answer as one with several."""

    def answers(request: Any, call: Call) -> Iterator[bytes]:
        yield served(request, call).SerializeToString()

    return answers


def _as_error(error: Exception) -> P4Error:
    """The error that ends a call. An exception by which gRPC itself ends a call is raised again."""
    if isinstance(error, P4Error):
        return error
    if type(error) is Exception or isinstance(error, grpc.RpcError):
        raise error
    return P4Error(Code.INTERNAL, f"{type(error).__name__}: {error}")


def _echo(packet: Any, to: Any) -> None:
    """The start of a packet that was refused, without fields that are unknown."""
    to.payload = packet.payload[:MOST_ECHOED]
    left = MOST_ECHOED
    for item in packet.metadata:
        # An empty one has no bytes, and counts, too.
        left -= 16 + item.ByteSize()
        if left < 0:
            break
        to.metadata.add(metadata_id=item.metadata_id, value=item.value)


def _no_message() -> P4Error:
    return invalid("the request is not a message of this kind")


def _request(requests: Iterator[bytes], call: Call) -> bytes:
    """The request of a call that has one."""
    data = next(requests, None)
    call.requested = True
    if data is None:
        raise invalid("a call has a request, and this one has none")
    return data


def _parsed(data: bytes, call: Call, message: Any) -> Any:
    with call.slot:
        try:
            return message.FromString(data)
        except DecodeError:
            raise _no_message() from None
