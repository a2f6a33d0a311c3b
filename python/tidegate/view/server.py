"""Serves the dashboard on loopback, in a thread of its own, to who has its token.

A page of somebody else's in the same browser gets nothing: it does not know the token, its requests have another Origin, and a name of
its own that leads to this machine is another Host.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

from tidegate import assets
from tidegate._core import TidegateError

PERIOD_S = 0.05
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


class Source(Protocol):
    """What a page shows."""

    def about(self) -> tuple[int, dict[str, Any]]:
        """What there is, and a number that changes with it."""

    def frame(self) -> tuple[int, bytes | None]:
        """The newest message of `frames`, and its number."""

    def command(self, said: dict[str, Any]) -> None:
        """What the reader asks for. Raises `ValueError` for what makes no sense."""


class Server:
    """Serves a source while the `with` block runs."""

    def __init__(self, source: Source, port: int = 0) -> None:
        """Raises `TidegateError` where packages are missing or nothing can listen at the port."""
        try:
            import starlette  # noqa: F401
            import uvicorn
            import websockets  # noqa: F401
        except ImportError as error:
            raise TidegateError(
                f'the page needs {error.name}; install it with: pip install "tidegate[view]"'
            ) from None
        self._source = source
        self.token = secrets.token_urlsafe(24)
        self._socket = socket.socket()
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("127.0.0.1", port))
        except OSError as error:
            self._socket.close()
            raise TidegateError(f"port {port}: {error.strerror}; give another one with --view-port") from None
        self.port = self._socket.getsockname()[1]
        self._hosts = {f"{name}:{self.port}" for name in ("127.0.0.1", "localhost")}
        self._pages = 0
        config = uvicorn.Config(
            self.app(),
            log_level="critical",
            lifespan="off",
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            ws_max_size=MOST_COMMAND,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="view", daemon=True
        )

    @property
    def url(self) -> str:
        """Where the page is, with its token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(3.0)
        self._socket.close()

    def app(self) -> Callable[..., Any]:
        """The ASGI application."""
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse, Response
        from starlette.routing import Route, WebSocketRoute
        from starlette.websockets import WebSocket

        def refused(request: Request | WebSocket) -> str | None:
            if request.headers.get("host") not in self._hosts:
                return "this address is not the page's"
            origin = request.headers.get("origin")
            if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
                return "this is another page's request"
            return None

        def allowed(request: Request | WebSocket) -> bool:
            return secrets.compare_digest(request.query_params.get("token", "").encode(), self.token.encode())

        async def page(request: Request) -> Response:
            why = refused(request)
            if why is None and not allowed(request):
                why = "the token is missing or wrong; open the address that the command has printed"
            if why is not None:
                return PlainTextResponse(f"{why}\n", 403, HEADERS)
            return Response(assets.text("view.html"), 200, HEADERS, "text/html")

        async def static(request: Request) -> Response:
            name = request.path_params["name"]
            if refused(request) is not None or name not in STATIC:
                return PlainTextResponse("there is no such file\n", 404, HEADERS)
            return Response(assets.text(name), 200, HEADERS, STATIC[name])

        async def stream(socket: WebSocket) -> None:
            origin = socket.headers.get("origin")
            if (
                refused(socket) is not None
                or origin is None
                or not allowed(socket)
                or self._pages >= MOST_PAGES
            ):
                await socket.close(1008)
                return
            await socket.accept()
            self._pages += 1
            telling = asyncio.create_task(self._tell(socket))
            try:
                while True:
                    message = await socket.receive()
                    if message["type"] == "websocket.disconnect":
                        return
                    with suppress(ValueError, KeyError, TypeError):
                        said = json.loads(message.get("text") or "null")
                        if isinstance(said, dict):
                            self._source.command(said)
            finally:
                telling.cancel()
                self._pages -= 1

        application: Callable[..., Any] = Starlette(
            routes=[Route("/", page), Route("/assets/{name}", static), WebSocketRoute("/stream", stream)]
        )
        return application

    async def _tell(self, socket: Any) -> None:
        """Tell a browser what is new; one that is slow misses some."""
        known = seen = -1
        while True:
            number, about = self._source.about()
            if number != known:
                known = number
                await socket.send_text(json.dumps(about))
            number, frame = self._source.frame()
            if number != seen and frame is not None:
                seen = number
                await socket.send_bytes(frame)
            await asyncio.sleep(PERIOD_S)
