"""The process that serves a page: `python -m tidegate.view.serving LISTENING CHANNEL`, numbers of sockets. It ends when the run's end of
the channel is closed, however that comes.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from contextlib import suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tidegate.view.asking import Asked
from tidegate.view.board import Board
from tidegate.view.channel import LENGTH
from tidegate.view.flows import PortFlows
from tidegate.view.frames import unpack
from tidegate.view.packets import Packets
from tidegate.view.server import MOST_COMMAND, Readers

NICENESS = 10
"""The run goes before."""
PERIOD_S = 0.02
"""Between two messages to the run."""
MOST_CONNECTIONS = 64


class Connection(H11Protocol):  # type: ignore[misc]
    """A connection for requests. Beyond the most that there may be another one makes way: the oldest that asks for nothing, or else the
    oldest; not one that a browser is shown the run by.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Called by asyncio."""
        self._began = self.loop.time()
        super().connection_made(transport)
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        if others and len(self.connections) > MOST_CONNECTIONS:
            last = min(others, key=lambda one: (one.is_answering, one._began))
            self.connections.discard(last)
            last.transport.abort()

    @property
    def is_answering(self) -> bool:
        """Whether it has a request that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete


class Serving:
    """The page of one run."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._board = Board()
        self._asked = Asked()
        self._packets: Packets | PortFlows | None = None
        self._paused = False

    async def run(self, listening: socket.socket) -> None:
        """Serve until the run is gone."""
        about = json.loads(await self._message())
        self._absent_s: float = about["absent_s"]
        self._readers = Readers(self._board, self._asked, about["token"], about["port"], about["patience_s"])
        config = uvicorn.Config(
            self._readers.app(),
            log_level="critical",
            lifespan="off",
            http=Connection,
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            ws_max_size=MOST_COMMAND,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        telling = asyncio.create_task(self._tell())
        serving = asyncio.create_task(server.serve([listening]))
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                self._show(await self._message())
        telling.cancel()
        server.should_exit = True
        await serving

    async def _message(self) -> bytes:
        length = int.from_bytes(await self._reader.readexactly(LENGTH), "little")
        return await self._reader.readexactly(length)

    def _show(self, message: bytes) -> None:
        header, columns = unpack(message)
        if "about" in header:
            self._board.begin(header["about"])
        else:
            self._paused = header.get("paused", False)
            if "trace" in header:
                header["trace"] = self._traced(header["trace"])
            self._board.update(header, columns)
        self._readers.tell()

    def _traced(self, said: dict[str, Any] | None) -> dict[str, Any] | None:
        if self._packets is not None and (said is None or said["number"] != self._packets.number):
            self._packets.close()
            self._packets = None
        if said is None:
            return None
        shown = {name: said[name] for name in ("flow", "name", "sampled", "problem") if name in said}
        try:
            if self._packets is None:
                self._packets = PortFlows(said) if "segment" in said else Packets(said)
            return shown | self._packets.look(said)
        except OSError as error:
            return shown | {"packets": [], "problem": f"the trace cannot be read: {error.strerror}"}

    async def _tell(self) -> None:
        """Tell the run what readers ask for."""
        looked = asyncio.get_running_loop().time()
        while True:
            now = asyncio.get_running_loop().time()
            if self._readers.count or not self._paused:
                looked = now
            elif now - looked > self._absent_s:
                self._asked.say(pause=False)
                looked = now
            message = self._asked.take()
            if message is not None:
                self._writer.write(len(message).to_bytes(LENGTH, "little") + message)
                await self._writer.drain()
            await asyncio.sleep(PERIOD_S)


async def _serve(listening: socket.socket, channel: socket.socket) -> None:
    await Serving(*await asyncio.open_connection(sock=channel)).run(listening)


def main() -> None:
    """Serve."""
    with suppress(OSError):
        os.nice(NICENESS)
    listening, channel = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    asyncio.run(_serve(listening, channel))


if __name__ == "__main__":
    main()
