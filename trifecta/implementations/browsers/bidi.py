"""WebDriver BiDi (https://w3c.github.io/webdriver-bidi/) over the browser's own websocket, with no driver between.

Only the envelope is understood here: a command has one answer. No event is asked for, and one that comes is left.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trifecta.design.extras import LazyModule

if TYPE_CHECKING:
    import websockets.asyncio.client as sockets
    import websockets.exceptions as problems
else:
    sockets, problems = LazyModule("websockets.asyncio.client"), LazyModule("websockets.exceptions")

Params = dict[str, Any]

MAX_MESSAGE_BYTES = 256 << 20  # a film strip comes in one answer


class BidiError(Exception):
    """The browser refused a command; ``code`` is the protocol's error code."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}")


class BidiClosedError(Exception):
    """The connection is gone: the browser ended or crashed."""


class Bidi:
    """A session of the protocol. Nothing times out here."""

    def __init__(self, socket: sockets.ClientConnection) -> None:
        """``socket``: connected; it is closed by ``close``."""
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Params]] = {}
        self._closed = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, url: str) -> Bidi:
        """Open a session at ``ws://127.0.0.1:PORT/session``; BidiClosedError when nobody answers there."""
        try:
            socket = await sockets.connect(
                url, max_size=MAX_MESSAGE_BYTES, compression=None, proxy=None, ping_interval=None
            )
        except (OSError, problems.WebSocketException) as error:
            raise BidiClosedError(f"{url}: {error}") from None
        bidi = cls(socket)
        try:
            await bidi.command("session.new", {"capabilities": {"alwaysMatch": {"acceptInsecureCerts": False}}})
        except BaseException:
            await bidi.close()
            raise
        return bidi

    async def command(self, method: str, params: Params | None = None) -> Params:
        """The result of a command; BidiError when it is refused, BidiClosedError when the browser is gone."""
        if self._closed.is_set():
            raise BidiClosedError("the browser is gone")
        number = next(self._ids)
        future: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._socket.send(json.dumps({"id": number, "method": method, "params": params or {}}))
            return await future
        except (OSError, problems.WebSocketException) as error:
            raise BidiClosedError(str(error)) from None
        finally:
            self._waiting.pop(number, None)

    async def call(self, context: str, function: str, *arguments: str | float) -> Any:
        """Call a JavaScript function in ``context`` and return what it returned, through JSON; a promise is awaited.

        BidiError with the code ``javascript error`` when it threw.
        """
        result = await self.command(
            "script.callFunction",
            {
                "functionDeclaration": f"async (...args) => JSON.stringify(await ({function})(...args)) ?? 'null'",
                "arguments": [
                    {"type": "string" if isinstance(each, str) else "number", "value": each} for each in arguments
                ],
                "awaitPromise": True,
                "target": {"context": context},
            },
        )
        if result.get("type") != "success":
            raise BidiError("javascript error", str(result.get("exceptionDetails", {}).get("text", "")))
        return json.loads(result["result"]["value"])

    async def close(self) -> None:
        """Close the connection."""
        with suppress(OSError, problems.WebSocketException):
            await self._socket.close()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

    async def _read(self) -> None:
        reason = "the browser closed the connection"
        try:
            async for text in self._socket:
                self._take(json.loads(text))
        except (OSError, problems.WebSocketException, ValueError) as error:
            reason = str(error) or reason
        finally:
            self._closed.set()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(BidiClosedError(reason))

    def _take(self, message: Any) -> None:
        """One message of the browser; what nobody waits for is left."""
        if not isinstance(message, dict):
            raise ValueError("a message that is not an object")
        number = message.get("id")
        if isinstance(number, int):
            future = self._waiting.get(number)
            if future is None or future.done():
                return
            if message.get("type") == "error" or "error" in message:
                future.set_exception(BidiError(str(message.get("error")), str(message.get("message"))))
            else:
                result = message.get("result")
                future.set_result(result if isinstance(result, dict) else {})
