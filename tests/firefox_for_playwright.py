"""The distribution's Firefox as Playwright can drive it: a program that stands between them, run in Firefox's place.

Playwright sends one command of WebDriver BiDi that this Firefox does not know, and does without no context of it:
`emulation.setMediaFeaturesOverride`. It is answered here, and the colours that it asks for are set as a preference.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

UNKNOWN = "emulation.setMediaFeaturesOverride"
SCHEMES = {"dark": 0, "light": 1, None: 2}
SCHEME = "layout.css.prefers-color-scheme.content-override"
OWN = 1 << 40
"""Numbers of our own commands begin here: Playwright's are far below."""
SAYS = re.compile(rb"(.*WebDriver BiDi listening on )(ws://127\.0\.0\.1:\d+)(.*)", re.DOTALL)


class Between:
    """One connection of Playwright, and the one of Firefox that belongs to it."""

    def __init__(self, near: ServerConnection, far: ClientConnection) -> None:
        self._near, self._far = near, far
        self._number = OWN
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        back = asyncio.create_task(self._back())
        try:
            async for text in self._near:
                asked = json.loads(text)
                if asked.get("method") == UNKNOWN:
                    task = asyncio.create_task(self._answer(asked))
                    self._answering.add(task)
                    task.add_done_callback(self._answering.discard)
                else:
                    await self._far.send(text)
        finally:
            back.cancel()

    async def _back(self) -> None:
        try:
            async for text in self._far:
                said = json.loads(text)
                if said.get("id") in self._waiting:
                    self._waiting.pop(said["id"]).set_result(said)
                else:
                    await self._near.send(text)
        finally:  # Firefox has ended, or what is between
            for waiting in self._waiting.values():
                waiting.cancel()
            await self._near.close()

    async def _answer(self, asked: dict[str, Any]) -> None:
        try:
            answer = await self._set_scheme(asked["params"]["features"])
        except (KeyError, TypeError, IndexError) as error:  # said, not waited for
            answer = {"type": "error", "error": "unknown error", "message": f"{UNKNOWN}: {error!r}"}
        await self._near.send(json.dumps({"id": asked["id"], **answer}))

    async def _set_scheme(self, features: dict[str, Any]) -> dict[str, Any]:
        scheme = features.get("prefers-color-scheme")
        tree = await self._ask("browsingContext.getTree", {"moz:scope": "chrome", "maxDepth": 0})
        set_it = f'Services.prefs.setIntPref("{SCHEME}", {SCHEMES[scheme]})'
        window = {"context": tree["result"]["contexts"][0]["context"]}
        made = await self._ask("script.evaluate", {"expression": set_it, "target": window, "awaitPromise": False})
        if made.get("type") == "success" and made["result"].get("type") == "success":
            return {"type": "success", "result": {}}
        return {"type": "error", "error": "unknown error", "message": json.dumps(made)}

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._waiting[self._number] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[self._number]
        await self._far.send(json.dumps({"id": self._number, "method": method, "params": params}))
        return dict(await waiting)


async def main(firefox: str, *arguments: str) -> int:
    """Run Firefox until it ends, and say where it is to be reached: here."""
    process = await asyncio.create_subprocess_exec(firefox, *arguments, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    async for line in process.stderr:
        if (found := SAYS.match(line)) is None:
            sys.stderr.buffer.write(line)
            sys.stderr.flush()
            continue
        before, address, after = found.groups()
        async with serve(_through(address.decode()), "127.0.0.1", 0, max_size=None, compression=None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            sys.stderr.buffer.write(before + f"ws://127.0.0.1:{port}".encode() + after)
            sys.stderr.flush()
            async for later in process.stderr:
                sys.stderr.buffer.write(later)
                sys.stderr.flush()
    return await process.wait()


def _through(address: str) -> Any:
    async def between(near: ServerConnection) -> None:
        assert near.request is not None
        far_address = address + near.request.path
        try:
            async with connect(far_address, max_size=None, compression=None, proxy=None, ping_interval=None) as far:
                await Between(near, far).run()
        except ConnectionClosed:
            await near.close()

    return between


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
