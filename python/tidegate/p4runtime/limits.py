"""What a P4Runtime server grants to its clients: sizes in bytes, times in seconds, and numbers of things.

A client is a certificate's name where clients show one (`--grpc-ca`), and else the address that it connects from. All addresses of
the loopback count as one, and so do those of 64 bits of IPv6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from tidegate._core import TidegateError
from tidegate.suggest import did_you_mean


@dataclass(frozen=True)
class Limits:
    """Each is an option `--grpc-limit NAME=VALUE` of `tidegate switch`."""

    message_bytes: int = 4 << 20
    """A message to the server."""
    parsed_bytes: int = 8 << 20
    """Messages of more than 64 KiB that are worked on, each of which takes some twenty times as much: of primaries of the default role,
    of those of others, and of all other clients. A client has half of it, or one message."""
    waiting_bytes: int = 64 << 20
    """Such messages that wait to be worked on, beside those of primaries of the default role."""
    stream_bytes: int = 128 << 10
    """A message on a stream: a packet with its header has 68 KiB at most, a role's configuration 64 KiB."""
    source_bytes: int = 1 << 20
    """A program that is pushed."""
    compile_cpu_s: int = 5
    """Processor time to compile a program."""
    compile_s: int = 25
    """Time to compile a program, by the clock."""
    compile_bytes: int = 2 << 30
    """Address space of the process that compiles; 512 MiB of it are its stack."""
    compilations: int = 1
    """Compiled at the same time; as many again wait."""
    p4info_bytes: int = 16 << 20
    """P4Info of a program that is pushed, as text."""
    calls: int = 64
    """Calls at a time, beside streams and those of primaries."""
    calls_per_client: int = 32
    """Of these, one client's."""
    calls_per_primary: int = 8
    """Calls at a time on a connection that a primary's stream is on; they have room of their own."""
    large_answers: int = 2
    """Answers of more than 4096 entities, or 1 MiB, at a time, of others than primaries of the default role."""
    call_s: int = 120
    """A call."""
    request_s: int = 5
    """From the start of a call to its request, and of a stream to its first arbitration update."""
    stalled_s: int = 15
    """A client may leave a part of an answer unread for so long."""
    streams: int = 32
    """Streams at a time. Of more, one that has not taken part in an election makes way, or the newest that is no primary's of a client
    that has more than the newcomer's; else the newcomer is refused."""
    streams_per_client: int = 16
    """Of these, one client's; of more, one that has not taken part in an election makes way, or the newcomer is refused."""
    roles: int = 64
    """Roles, of which those without streams make way for new ones."""
    role_name: int = 256
    """Characters of a role's name, or of a name in its configuration."""
    role_objects: int = 256
    """Names in a role's configuration."""
    role_bytes: int = 64 << 10
    """A role's configuration, which is kept and sent back as it is."""
    messages_per_stream: int = 1024
    """Packets, digests and notifications that wait for a controller."""
    bytes_per_stream: int = 16 << 20
    """Bytes of them."""
    digests_per_list: int = 4096
    """Digests in a list, whatever a controller asks for."""
    digests_sent: int = 65_536
    """Digests that are sent and not acknowledged; more are sent again if they come again."""
    updates: int = 4096
    """Updates of a `Write`."""
    updates_at_once: int = 256
    """Updates of a `Write` that is done whole or not at all, for all of which packets wait; the engine takes 4096."""
    cells: int = 1 << 22
    """Cells that updates without an index set in a `Write` that goes on after an error; the first of them may set more."""
    requests: int = 65_536
    """Requests of a `Read`."""
    entities: int = 1 << 18
    """Entities of the answer to a `Read`."""
    answer_bytes: int = 64 << 20
    """Bytes of cells, of what groups have, and of wide entries that a `Read` holds until its messages are made."""
    looks: int = 1 << 20
    """Entries that a `Read` goes through, also where it gives none of them; each time that it asks the switch is one more."""
    connections: int = 256
    """Connections at a time."""
    connections_per_address: int = 32
    """Of these, those that come from one address; those of the loopback, or of 64 bits of IPv6, count as one."""
    connections_spare: int = 128
    """Of all connections, those that are kept free by ending others on which nothing is called; a client may open many between two
    looks at them."""
    calls_per_connection: int = 100
    """Calls and streams at a time that gRPC takes on a connection."""
    idle_s: int = 60
    """A connection without calls and streams is closed."""
    keepalive_s: int = 10
    """A connection is asked so often whether its client is there, which has half of it to answer."""

    ping_ms: int = 500
    """A client may ask so often whether the server is there, also where nothing is sent; gRPC's own limit is 5 minutes."""
    handshake_s: int = 5
    """For TLS and the first frames of HTTP/2, after which a connection is closed."""
    header_bytes: int = 8 << 10
    """Header fields of a call."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 1 <= value < 1 << 40:
                raise TidegateError(
                    f"{field.name}={value}: a limit is a whole number from 1 to 1099511627775"
                )
        if self.updates_at_once > 4096:
            raise TidegateError(f"updates_at_once={self.updates_at_once}: the engine takes 4096 at most")

    @classmethod
    def parse(cls, given: Sequence[str]) -> Limits:
        """The limits, with those changed that `NAME=VALUE` texts give. Raises `TidegateError`."""
        known = {field.name: field.default for field in fields(cls)}
        changed: dict[str, int] = {}
        for text in given:
            name, equals, value = text.partition("=")
            if name not in known:
                raise TidegateError(
                    f"there is no limit {name!r}; {did_you_mean(name, known)}the names are {', '.join(known)}"
                )
            if not equals:
                raise TidegateError(f"{text!r} is not NAME=VALUE; give a number, as {name}={known[name]}")
            if not (value.isascii() and value.isdecimal() and len(value) <= 20):
                raise TidegateError(f"{text!r}: give a whole number")
            if name in changed:
                raise TidegateError(f"{name} is given twice")
            changed[name] = int(value)
        return replace(cls(), **changed)
