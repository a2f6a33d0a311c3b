"""Serves the page to who has its token.

A page of somebody else's in the same browser gets nothing: it does not know the token, its requests have another Origin, and a name of
its own that leads to this machine is another Host.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from tidegate import assets
from tidegate.view.asking import Asked
from tidegate.view.board import Board

LEAST_S = 0.05
"""Between two messages to a browser."""
MOST_PAGES = 8
MOST_COMMAND = 4096
"""Bytes of what a browser says."""
STATIC = {
    "uplot.min.js": "text/javascript",
    "uplot.min.css": "text/css",
    "page.css": "text/css",
    "charts.js": "text/javascript",
    "view.js": "text/javascript",
    "view.css": "text/css",
}
# uPlot and the page set styles from scripts alone, which a policy of styles does not concern.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOO_MANY = 4001
"""Close code: as many browsers as may show the page do."""


class Readers:
    """The browsers that show a board. One that does not take a message for `patience_s` is gone."""

    def __init__(self, board: Board, asked: Asked, token: str, port: int, patience_s: float) -> None:
        self._board = board
        self._patience_s = patience_s
        self._asked = asked
        self._token = token.encode()
        names = ("127.0.0.1", "localhost")
        # Browsers leave out the port of HTTP.
        self._hosts = {f"{name}:{port}" for name in names} | set(names if port == 80 else ())
        self._news: dict[object, asyncio.Event] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._news)

    def tell(self) -> None:
        """There is something new on the board."""
        for news in self._news.values():
            news.set()

    def app(self) -> Callable[..., Any]:
        """The ASGI application."""
        application: Callable[..., Any] = Starlette(
            routes=[
                Route("/", self._page),
                Route("/assets/{name}", self._static),
                WebSocketRoute("/stream", self._stream),
            ]
        )
        return application

    def _refused(self, request: Request | WebSocket) -> str | None:
        if request.headers.get("host") not in self._hosts:
            return "this address is not the page's"
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return "this is another page's request"
        return None

    def _allowed(self, request: Request | WebSocket) -> bool:
        return secrets.compare_digest(request.query_params.get("token", "").encode(), self._token)

    async def _page(self, request: Request) -> Response:
        why = self._refused(request)
        if why is None and not self._allowed(request):
            why = "the token is missing or wrong; open the address that the command has printed"
        if why is not None:
            return PlainTextResponse(f"{why}\n", 403, HEADERS)
        return Response(assets.text("view.html"), 200, HEADERS, "text/html")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if self._refused(request) is not None or name not in STATIC:
            return PlainTextResponse("there is no such file\n", 404, HEADERS)
        return Response(assets.text(name), 200, HEADERS, STATIC[name])

    async def _stream(self, socket: WebSocket) -> None:
        own = socket.headers.get("origin") is not None
        if self._refused(socket) is not None or not own or not self._allowed(socket):
            await socket.close(1008)
            return
        await socket.accept()
        if len(self._news) >= MOST_PAGES:
            await socket.close(TOO_MANY)
            return
        reader = object()
        self._news[reader] = asyncio.Event()
        self._news[reader].set()
        self._asked.come(reader)
        telling = asyncio.create_task(self._tell(socket, self._news[reader]))
        hearing = asyncio.create_task(self._hear(socket, reader))
        try:
            await asyncio.wait((telling, hearing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            hearing.cancel()
            del self._news[reader]
            self._asked.leave(reader)
        # One that does not read does not take this either.
        with suppress(RuntimeError, TimeoutError):
            async with asyncio.timeout(1.0):
                await socket.close(1001)

    async def _hear(self, socket: WebSocket, reader: object) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                self._asked.hear(reader, message.get("text"))

    async def _tell(self, socket: WebSocket, news: asyncio.Event) -> None:
        """Tell a browser what is new; one that is slow misses what was there in between."""
        board, epoch, number = self._board, -1, 0
        with suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            while True:
                await news.wait()
                news.clear()
                async with asyncio.timeout(self._patience_s):
                    if epoch != board.epoch:
                        epoch, number = board.epoch, 0
                        await socket.send_text(board.about)
                    message = board.since(number)
                    if message is not None and epoch == board.epoch:
                        number = board.number
                        await socket.send_bytes(message)
                await asyncio.sleep(LEAST_S)
