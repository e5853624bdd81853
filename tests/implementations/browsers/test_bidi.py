"""The client of WebDriver BiDi: answers find their commands, and a browser that goes is noticed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from trifecta.implementations.browsers.bidi import Bidi, BidiClosedError, BidiError


@asynccontextmanager
async def browser() -> AsyncIterator[str]:
    """Answers as a browser does; to ``both`` late, after the command that follows it."""

    async def talk(socket: ServerConnection) -> None:
        held: list[int] = []
        async for text in socket:
            said = json.loads(text)
            number, method = said["id"], said["method"]
            answer: dict[str, Any] = {"type": "success", "id": number, "result": {"method": method}}
            if method == "held":
                held.append(number)
                continue
            if method == "refused":
                answer = {"type": "error", "id": number, "error": "no such frame", "message": "gone"}
            if method == "go":
                return
            if method == "nonsense":
                await socket.send("[]")
                continue
            if method == "script.callFunction":
                values = [each["value"] for each in said["params"]["arguments"]]
                threw = values == ["throw"]
                result = {"type": "string", "value": json.dumps(values)}
                answer["result"] = (
                    {"type": "exception", "exceptionDetails": {"text": "it threw"}} if threw
                    else {"type": "success", "result": result}
                )  # fmt: skip
            await socket.send(json.dumps({"type": "event", "method": "log.entryAdded", "params": {}}))  # left
            await socket.send(json.dumps({"type": "success", "id": 9999, "result": {}}))  # nobody asked
            await socket.send(json.dumps(answer))
            for each in held:
                await socket.send(json.dumps({"type": "success", "id": each, "result": {"late": True}}))

    async with serve(talk, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/session"


def test_commands_and_events() -> None:
    async def talk() -> None:
        async with browser() as url:
            bidi = await Bidi.connect(url)
            late = asyncio.ensure_future(bidi.command("held"))
            await asyncio.sleep(0)
            assert await bidi.command("browsingContext.getTree") == {"method": "browsingContext.getTree"}
            assert await late == {"late": True}
            with pytest.raises(BidiError, match="no such frame: gone") as refused:
                await bidi.command("refused")
            assert refused.value.code == "no such frame"
            assert await bidi.call("context", "(a, b) => [a, b]", "x", 1.5) == ["x", 1.5]
            with pytest.raises(BidiError, match="it threw"):
                await bidi.call("context", "() => 1", "throw")
            await bidi.close()

    asyncio.run(asyncio.wait_for(talk(), 20))


@pytest.mark.parametrize("how", ["go", "nonsense"])
def test_a_browser_that_goes_fails_what_waits_and_what_comes(how: str) -> None:
    async def talk() -> None:
        async with browser() as url:
            bidi = await Bidi.connect(url)
            held = asyncio.ensure_future(bidi.command("held"))
            await asyncio.sleep(0)
            with pytest.raises(BidiClosedError):
                await bidi.command(how)
            with pytest.raises(BidiClosedError):
                await held
            with pytest.raises(BidiClosedError):
                await bidi.command("browsingContext.getTree")
            await bidi.close()

    asyncio.run(asyncio.wait_for(talk(), 20))


def test_nobody_there() -> None:
    with pytest.raises(BidiClosedError):
        asyncio.run(asyncio.wait_for(Bidi.connect("ws://127.0.0.1:1/session"), 20))
