"""The addresses of the page, and what each answers with."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from trifecta import studies
from trifecta.contract.values import JsonObject
from trifecta.design.errors import TrifectaError, UserError
from trifecta.report.page_templates import TEMPLATES
from trifecta.store.exports import exposition
from trifecta.ui import comparison, reading, results, trial_files, values, writers
from trifecta.ui.access_control import METRICS, Guard, Secrets
from trifecta.ui.file_polling import Answering, Watcher, background
from trifecta.ui.index import Index
from trifecta.ui.jobs import Jobs
from trifecta.ui.live import Follower
from trifecta.ui.prometheus import Exposition

ASSETS = Path(__file__).parent / "assets"
LARGEST_BODY = 16_384
_SETTING = re.compile(r"[A-Za-z_][\w.-]*=.+")
_STUDY = re.compile(r"[A-Za-z0-9][\w-]*")
LIST_SHARE = 500
"""The list is asked for again no sooner than after this many times what it cost."""


class Site:
    """What all answers rest on: the folder's index, the commands that were started, who is followed."""

    def __init__(self, folder: Path, jobs: Jobs, known: Secrets) -> None:
        """Over the runs in ``folder``."""
        self.index = Index(folder)
        self.jobs, self.known = jobs, known
        self.watcher = Watcher()
        self.answering = Answering(self.index, self.watcher.reading)
        self.scraped = Exposition(self.index)
        self._shell = (ASSETS / "index.html").read_text(encoding="utf-8")

    def app(self, port: int) -> ASGIApp:
        """All of it behind the guard."""

        @asynccontextmanager
        async def life(_: Starlette) -> AsyncIterator[None]:
            async with background(self.watcher, self.answering):
                yield

        makers: dict[str, Callable[[Request], Any]] = {
            "/api/run": self._run, "/api/cell": self._cell, "/api/values": self._values, "/api/trial": self._trial,
            "/api/compare": self._compare, "/api/found": self._run_document,
        }  # fmt: skip
        routes: list[Route | Mount] = [
            Route("/", self._page),
            Route("/report.css", _palette),
            Route("/api/runs", self._runs),
            *(Route(path, _with_errors(self._reading(make))) for path, make in makers.items()),
            Route("/api/first", _with_errors(self._first)),
            Route("/api/file", _with_errors(self._file)),
            Route("/api/report", _with_errors(self._report)),
            Route("/api/known", _with_errors(self._is_known)),
            Route("/api/live", _with_errors(self._live)),
            Route("/api/jobs", self._jobs),
            Route("/api/stop", _with_errors(self._stop), methods=["POST"]),
            Route("/api/resume", _with_errors(self._resume), methods=["POST"]),
            Route("/api/start", _with_errors(self._start), methods=["POST"]),
            Mount("/assets", StaticFiles(directory=ASSETS)),
        ]
        if self.known.metrics:
            routes.append(Route(METRICS, self._metrics))
        return Guard(Starlette(routes=routes, lifespan=life), port, self.known)

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(self._shell.replace("{{token}}", self.known.change))

    async def _runs(self, _: Request) -> Response:
        """The list; ``again_s``: when it may be asked for next without costing a measurement anything."""
        began = time.process_time()
        entries = self.index.look()
        busy = set(writers.writers(self.index.path(one.name) for one in entries if one.kind == "run"))
        runs = [
            {"name": one.name, "kind": one.kind, "title": one.title, "words": one.words, "began": one.began_utc,
             "state": one.state, "answer": one.answer, "problem": one.problem,
             "written": bool(busy) and self.index.path(one.name) in busy}
            for one in entries
        ]  # fmt: skip
        self.answering.asked()
        self.answering.wake(busy=bool(busy))
        body = {"folder": str(self.index.folder), "runs": runs, "studies": self._studies()}
        text = json.dumps(body, ensure_ascii=False)  # before `again_s`, which counts what that costs
        again_s = max(5.0, LIST_SHARE * (time.process_time() - began))
        return Response(f'{{"again_s": {again_s:.1f}, {text[1:]}', media_type="application/json")

    def _studies(self) -> list[str]:
        return [*studies.bundled(), *studies.campaigns()]

    def _reading(self, make: Callable[[Request], JsonObject]) -> Callable[[Request], Awaitable[Response]]:
        """An answer that is read of a run, one at a time, in a thread."""

        async def answer(request: Request) -> Response:
            self.answering.asked()
            document = await anyio.to_thread.run_sync(lambda: make(request), limiter=self.watcher.reading)
            return JSONResponse(document)

        return answer

    def _folder(self, request: Request, field: str = "name") -> Path:
        return self.index.path(_text_field(request, field))

    async def _first(self, request: Request) -> Response:
        """The first picture of a run, before its files are compared with its manifest: `_run` does that."""
        self.answering.asked()
        follower = Follower(self._folder(request), _text_field(request, "name"))
        document = await anyio.to_thread.run_sync(follower.document, limiter=self.watcher.looking)
        return JSONResponse(document)

    def _run(self, request: Request) -> JsonObject:
        return reading.run(self._folder(request), _text_field(request, "name"))

    def _cell(self, request: Request) -> JsonObject:
        return reading.cell(self._folder(request), _text_field(request, "cell"))

    def _values(self, request: Request) -> JsonObject:
        return values.against(self._folder(request), _text_field(request, "metric"), _text_field(request, "factor"))

    def _trial(self, request: Request) -> JsonObject:
        return values.trial(self._folder(request), _text_field(request, "trial"))

    def _compare(self, request: Request) -> JsonObject:
        folders = self._folder(request, "first"), self._folder(request, "second")
        return comparison.side_by_side(*folders, request.query_params.get("metric") or None)

    def _run_document(self, request: Request) -> JsonObject:
        one = self.index.entry(_text_field(request, "name"))
        if one.kind == "run":
            raise UserError(f"{one.name} is a run, and no map, ladder or reproduction")
        return results.show(self.index.path(one.name), one.kind, one.name)

    async def _file(self, request: Request) -> Response:
        names = [_text_field(request, field) for field in ("trial", "kind", "file")]
        folder = self._folder(request)
        content = await anyio.to_thread.run_sync(lambda: trial_files.read(folder, *names))
        if names[1] == "frames":
            return Response(content, media_type="image/jpeg")
        headers = {"content-disposition": f'attachment; filename="{names[0]}-{names[2].replace("/", "-")}"'}
        return Response(content, media_type="application/json", headers=headers)

    async def _report(self, request: Request) -> Response:
        """The report that lies in a run's folder, to be kept: in this page's origin it is not opened."""
        path = self._folder(request) / "report.html"
        if not path.is_file() or path.is_symlink():
            raise UserError(f"{path} is not there yet; `trifecta report {path.parent}` writes it")
        return FileResponse(path, filename=f"{path.parent.name}.html", media_type="application/octet-stream")

    async def _is_known(self, request: Request) -> Response:
        return JSONResponse({"kind": self.index.entry(_text_field(request, "name")).kind})

    async def _live(self, request: Request) -> Response:
        name = _text_field(request, "name")
        events = self.watcher.follow(self._folder(request), name)
        return StreamingResponse(events, media_type="text/event-stream")

    async def _metrics(self, _: Request) -> Response:
        text = await anyio.to_thread.run_sync(self.scraped.text, limiter=self.watcher.looking)
        return Response(text, headers={"content-type": exposition.MEDIA_TYPE})

    async def _jobs(self, _: Request) -> Response:
        return JSONResponse({"jobs": self.jobs.shown()})

    async def _stop(self, request: Request) -> Response:
        body = await _body(request)
        writers.stop(self.index.path(_text(body, "name")))
        return JSONResponse({"said": "asked to stop: it ends after the trial that runs, and can be resumed"})

    async def _resume(self, request: Request) -> Response:
        body = await _body(request)
        name = _text(body, "name")
        folder = self.index.path(name)
        if writers.writer(folder) is not None:
            raise UserError(f"{name} is being measured already")
        words = ["resume", str(folder), *_extension_options(body)]
        self.jobs.start(words, name)
        return JSONResponse({"run": name})

    async def _start(self, request: Request) -> Response:
        """Measure a bundled study into the folder."""
        body = await _body(request)
        study = _text(body, "study")
        if not _STUDY.fullmatch(study) or study not in self._studies():
            raise UserError(f"study {study!r} is not a bundled one; known are {', '.join(self._studies())}")
        settings = body.get("set") or []
        if not isinstance(settings, list) or not all(isinstance(one, str) and _SETTING.fullmatch(one) for one in
                                                     settings):  # fmt: skip
            raise UserError("field 'set' is not a list of KEY=VALUE")
        name = f"{study}-{time.strftime('%Y%m%d-%H%M%S')}"
        folder = self.index.folder / name
        if folder.exists():
            raise UserError(f"{name} is there already; start it again in a second")
        changes = [word for one in settings for word in ("--set", one)]
        self.jobs.start(["run", study, *changes, *_extension_options(body), "--out", str(folder)], name)
        return JSONResponse({"run": name})


async def _palette(_: Request) -> Response:
    """Colours and type of the report: one file for both."""
    return FileResponse(TEMPLATES / "report.css", media_type="text/css")


def _extension_options(body: dict[str, Any]) -> list[str]:
    """``--blocks`` and ``--budget``, where they were asked for."""
    words: list[str] = []
    blocks, budget = body.get("blocks"), body.get("budget")
    if blocks not in (None, ""):
        if type(blocks) is not int or not 1 <= blocks <= 10_000:
            raise UserError("field 'blocks' is not a whole number from 1 to 10,000")
        words += ["--blocks", str(blocks)]
    if budget not in (None, ""):
        from trifecta.design.quantity import QuantityError, parse_time_ns

        try:
            parse_time_ns(str(budget))
        except QuantityError as error:
            raise UserError(f"field 'budget': {error}") from None
        words += ["--budget", str(budget)]
    return words


def _with_errors(make: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Errors that a user can mend are one line."""

    async def answer(request: Request) -> Response:
        try:
            return await make(request)
        except TrifectaError as error:
            status = 400 if isinstance(error, UserError) else 409
            return JSONResponse({"error": " ".join(str(error).split())}, status)

    return answer


def _text_field(request: Request, field: str) -> str:
    value = request.query_params.get(field)
    if not value:
        raise UserError(f"field {field!r} is missing")
    return value


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > LARGEST_BODY:
            raise UserError(f"the request has more than {LARGEST_BODY} octets")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise UserError("the request is not JSON") from None
    if not isinstance(document, dict):
        raise UserError("the request is not a JSON object")
    return document


def _text(body: dict[str, Any], field: str) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value:
        raise UserError(f"field {field!r} is not a text")
    return value
