"""A client's connection to a P4Runtime server: calls, a stream, an election."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc

from tidegate import addresses
from tidegate._core import TidegateError
from tidegate.p4runtime import pem
from tidegate.p4runtime.errors import KIND_OF, LARGEST_DETAILS, ROOM, Code, details
from tidegate.p4runtime.messages import SERVICE, methods, p4

MOST_MESSAGE = 64 << 20
# Messages of the stream that wait to be taken; one is taken however large it is.
MOST_WAITING = 4096
MOST_WAITING_BYTES = 64 << 20
# A batch's errors come as metadata, one for each update.
MOST_METADATA = 16 << 20
METADATA = ((ROOM, str(LARGEST_DETAILS)),)
# What gRPC takes besides HOST:PORT.
NAME_SCHEMES = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "vsock:")
# How long a call may take.
PATIENCE_S = 30.0


class Refused(TidegateError):
    """A server refused a call: `code` is gRPC's name of it, `errors` is what came of each part of a batch."""

    def __init__(self, error: grpc.RpcError) -> None:
        self.code: str = error.code().name
        self.errors = details(error)
        self.reason: str = error.details() or ""
        self.kind = KIND_OF.get(Code.__members__.get(self.code, Code.UNKNOWN), "invalid")
        self.object, self.cure = "", ""
        self.field: str | None = None
        super().__init__(f"{self.code}: {self.reason}")


@dataclass(frozen=True)
class ClientTls:
    """Files in PEM: who is trusted, and what this client shows of itself if it is asked to."""

    authority: Path
    certificate: Path | None = None
    key: Path | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """For gRPC; raises if a file cannot be read, or others can read the key."""
        key = None if self.key is None else pem.read(self.key, secret=True)
        certificate = None if self.certificate is None else pem.read(self.certificate)
        return grpc.ssl_channel_credentials(pem.read(self.authority), key, certificate)


class Heard(queue.Queue[Any]):
    """Messages received on the stream that nobody has taken yet; an exception comes last. Of too many the newest are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped = 0
        """How many, up to now."""
        self._bytes = 0

    def offer(self, message: Any) -> None:
        """Put a message there if there is room."""
        with self.mutex:
            waiting, held = self._qsize(), self._bytes
        if waiting and (waiting >= MOST_WAITING or held + _size(message) > MOST_WAITING_BYTES):
            self.dropped += 1
        else:
            self.put(message)

    def _put(self, item: Any) -> None:
        self._bytes += _size(item)
        super()._put(item)

    def _get(self) -> Any:
        item = super()._get()
        self._bytes -= _size(item)
        return item


def _size(message: Any) -> int:
    return 0 if isinstance(message, Exception) else int(message.ByteSize())


class Connection:
    """One controller, with a stream of its own."""

    def __init__(
        self,
        address: str,
        *,
        device_id: int = 1,
        election_id: tuple[int, int] | int | None = 1,
        role: str = "",
        role_config: Any = None,
        tls: ClientTls | None = None,
        take_part: bool = True,
    ) -> None:
        """Connect; take part in the election with `election_id`, its high part first; `None` means as a backup for good.

        `role_config` is a `google.protobuf.Any`.
        """
        if not address.startswith(NAME_SCHEMES):
            addresses.parse(address)
        options = [
            ("grpc.max_receive_message_length", MOST_MESSAGE),
            ("grpc.max_metadata_size", MOST_METADATA),
            ("grpc.absolute_max_metadata_size", MOST_METADATA),
        ]
        if tls is None:
            self._channel = grpc.insecure_channel(address, options=options)
        else:
            self._channel = grpc.secure_channel(address, tls.credentials(), options=options)
        self.device_id = device_id
        self.role = role
        self.election_id = election_id
        self._role_config = role_config
        self._calls: dict[str, Any] = {}
        for method in methods():
            kind = {
                "StreamChannel": self._channel.stream_stream,
                "Read": self._channel.unary_stream,
            }.get(method.name, self._channel.unary_unary)
            self._calls[method.name] = kind(
                f"/{SERVICE}/{method.name}",
                request_serializer=getattr(p4, method.input_type.name).SerializeToString,
                response_deserializer=getattr(p4, method.output_type.name).FromString,
            )
        self.heard = Heard()
        self._said: queue.Queue[Any] = queue.Queue()
        self._responses = self._calls["StreamChannel"](iter(self._said.get, None))
        threading.Thread(target=self._listen, name="p4runtime-client", daemon=True).start()
        if take_part:
            self.arbitrate(election_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the stream and the connection."""
        self._said.put(None)
        self._responses.cancel()
        self._channel.close()

    def _listen(self) -> None:
        try:
            for message in self._responses:
                self.heard.offer(message)
        except grpc.RpcError as error:
            self.heard.put(Refused(error))

    # The stream.

    def send(self, message: Any) -> None:
        """Send a `p4.StreamMessageRequest` on the stream."""
        self._said.put(message)

    def arbitrate(self, election_id: tuple[int, int] | int | None) -> None:
        """Take part in an election, or in another one."""
        self.election_id = election_id
        message = p4.StreamMessageRequest()
        message.arbitration.device_id = self.device_id
        if self.role:
            message.arbitration.role.name = self.role
        if self._role_config is not None:
            # Of whatever pool it is.
            message.arbitration.role.config.ParseFromString(self._role_config.SerializeToString())
        self._identify(message.arbitration)
        self.send(message)

    def _identify(self, request: Any) -> None:
        if self.election_id is not None:
            high, low = self.election_id if isinstance(self.election_id, tuple) else (0, self.election_id)
            request.election_id.high, request.election_id.low = high, low

    def next(self, kind: str, patience: float = PATIENCE_S) -> Any:
        """The next message of a kind on the stream; others are discarded."""
        while True:
            try:
                message = self.heard.get(timeout=patience)
            except queue.Empty:
                lost = self.heard.dropped
                why = f"; {lost} messages that nobody had taken were dropped" if lost else ""
                raise TidegateError(f"the server sent no {kind} in {patience:g} s{why}") from None
            if isinstance(message, Exception):
                raise message
            if message.WhichOneof("update") == kind:
                return getattr(message, kind)

    # Calls.

    def call(self, name: str, request: Any) -> Any:
        """A unary call."""
        try:
            return self._calls[name](request, timeout=PATIENCE_S, metadata=METADATA)
        except grpc.RpcError as error:
            raise Refused(error) from None

    def _request(self, kind: str) -> Any:
        request = getattr(p4, kind)(device_id=self.device_id, role=self.role)
        if hasattr(request, "election_id"):
            self._identify(request)
        return request

    def write(self, *updates: tuple[str, Any]) -> None:
        """Updates, each an `INSERT`, `MODIFY` or `DELETE` and a `p4.Entity`."""
        self.write_updates([(p4.Update.Type.Value(kind), entity) for kind, entity in updates])

    def write_updates(self, updates: Sequence[tuple[int, Any]], atomicity: str = "CONTINUE_ON_ERROR") -> None:
        """Updates by the number of their kind, with an atomicity of `p4.WriteRequest`."""
        request = self._request("WriteRequest")
        request.atomicity = p4.WriteRequest.Atomicity.Value(atomicity)
        for kind, entity in updates:
            request.updates.add(type=kind, entity=entity)
        self.call("Write", request)

    def read(self, *entities: Any) -> list[Any]:
        """The entities that are asked for."""
        return list(self.read_some(entities))

    def read_some(self, entities: Iterable[Any]) -> Iterator[Any]:
        """As `read`, one after another."""
        request = self._request("ReadRequest")
        request.entities.extend(entities)
        try:
            for answer in self._calls["Read"](request, timeout=PATIENCE_S, metadata=METADATA):
                yield from answer.entities
        except grpc.RpcError as error:
            raise Refused(error) from None

    def set_config(self, action: str, config: Any = None) -> None:
        """`VERIFY_AND_COMMIT` and so on."""
        request = self._request("SetForwardingPipelineConfigRequest")
        request.action = type(request).Action.Value(action)
        if config is not None:
            request.config.CopyFrom(config)
        self.call("SetForwardingPipelineConfig", request)

    def get_config(self, what: str = "ALL") -> Any:
        """The config that is set."""
        request = p4.GetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.response_type = type(request).ResponseType.Value(what)
        return self.call("GetForwardingPipelineConfig", request).config

    def now(self) -> int | None:
        """The switch's time in picoseconds; `None` if the server does not send it."""
        call = self._calls["Capabilities"]
        try:
            _, made = call.with_call(p4.CapabilitiesRequest(device_id=self.device_id), timeout=PATIENCE_S)
        except grpc.RpcError as error:
            raise Refused(error) from None
        for key, value in made.trailing_metadata() or ():
            if key == "tidegate-now":
                with contextlib.suppress(ValueError):
                    return int(value)
        return None
