"""Listens on 127.0.0.1, and makes itself the least important process of the machine.

Its processor time is other work to a run that goes on beside it (the check `machine` charges a trial's own processes
only), as that of any other program is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from trifecta.design.errors import CannotError, UserError
from trifecta.ui import prometheus_token
from trifecta.ui.access_control import Secrets
from trifecta.ui.app import Site
from trifecta.ui.jobs import Jobs

ADDRESS = "127.0.0.1"


def serve(
    folder: Path,
    port: int,
    opened: Callable[[str], None],
    say: Callable[[str], None],
    metrics: Path | None = None,
) -> None:
    """Serve until Ctrl-C; ``opened`` is given the address. Who shows the token in the file ``metrics``, which is made
    where there is none, is answered at ``/metrics``. UserError for no folder or such a file, CannotError for a port.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; give one that holds runs")
    of_metrics = "" if metrics is None else prometheus_token.of_file(metrics)
    listening = listen(port)
    with listening, Jobs(Path.cwd()) as jobs:
        step_back()
        known = Secrets(metrics=of_metrics)
        own = listening.getsockname()[1]
        server = server_of(
            Site(folder, jobs, known), own, lambda: opened(f"http://{ADDRESS}:{own}/?token={known.entry}")
        )
        with contextlib.suppress(KeyboardInterrupt):  # how it is meant to end
            server.run(sockets=[listening])
        if running := jobs.running():
            say(f"stopping what was started here ({running}); finished trials are kept, `trifecta resume` continues")


def listen(port: int) -> socket.socket:
    """A socket on 127.0.0.1, on a free port for 0."""
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        raise CannotError(f"cannot listen on {ADDRESS}:{port} ({error.strerror}); give another --port") from error


class Server(uvicorn.Server):
    """One that says when it answers, and lets go of the pages that follow a run when it ends."""

    def __init__(self, config: uvicorn.Config, site: Site, opened: Callable[[], None]) -> None:
        """Of ``site``; ``opened`` is called once Ctrl-C ends it as it should."""
        super().__init__(config)
        self._site = site
        self._opened = opened

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As any server does, then say so."""
        await super().startup(sockets)
        self._opened()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what would not end by itself, then as any server does.

        An answer that a page waits for when Ctrl-C comes is cancelled after a second: no error to tell of.
        """
        self._site.watcher.end()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def server_of(site: Site, port: int, opened: Callable[[], None] = lambda: None) -> Server:
    """The server of a site; it writes no log, in which tokens would stand. ``opened`` is called once it answers."""
    config = uvicorn.Config(
        site.app(port), log_level="error", access_log=False, ws="none", proxy_headers=False, http="h11", loop="asyncio",
        server_header=False, date_header=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    return Server(config, site, opened)


def step_back() -> None:
    """Nice 19 and, where the kernel allows it, only the time that nobody else wants (SCHED_IDLE)."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 19)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
