"""Replays a page archive by the servers that are named, in a sandbox, and prints what came of it as JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from trifecta.implementations.registry import SERVERS
from trifecta.implementations.server import ServerOptions, Site
from trifecta.implementations.servers.origin import Origin
from trifecta.lab import sandbox
from trifecta.workloads.replaying import check, in_words


class Otherwise(Origin):
    """The origin, which serves another archive."""

    def __init__(self, serve: Path) -> None:
        self.serve = serve

    def config(self, site: Site, options: ServerOptions) -> dict[str, Any]:
        return super().config(replace(site, replay=self.serve), options)


def main() -> None:
    arguments = sys.argv[1:]
    serve = None
    if arguments[0] == "--serve":  # another archive than the one that is compared with
        serve = Path(arguments[1])
        arguments = arguments[2:]
    folder, work, *names = arguments
    adapters = {name: Otherwise(serve) if serve else SERVERS[name] for name in names}
    sandbox.enter()
    for one in check(Path(folder), adapters, Path(work)):
        print("\n".join(in_words(one)), file=sys.stderr)
        print(json.dumps(dataclasses.asdict(one) | {"same": one.same}), flush=True)


main()
