"""What is known of the programs of a trial from outside: servers, links, and the CPU time of the driver."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence

from trifecta.contract.link import Links, LinkSummary
from trifecta.contract.load import LoadSummary
from trifecta.contract.stored import Server
from trifecta.lab.engine import EngineProgram
from trifecta.lab.topology import Wire
from trifecta.observers.resources import ResourceObserver
from trifecta.workloads.trial import beside_link, server_used
from trifecta.workloads.visits.place import Place, Serving

_END_S = 5.0  # a driver has said its last word and ends its browser


def server_pids(servers: Sequence[Serving]) -> dict[str, int]:
    """The processes of servers by the role under which their resources are recorded; the measured one is ``server``."""
    main, *others = servers
    pids = {"server": main.running.pid, **main.running.backend_pids}
    return pids | {f"server {serving.host}": serving.running.pid for serving in others}


def server_details(place: Place, servers: Sequence[Serving], resources: ResourceObserver, wall_ns: int) -> Server:
    """What is known of the measured server, what it used, what is behind it and beside it."""
    main, *others = servers
    details = server_used(main.running, place.network.host(main.host), resources)
    details |= {
        "host": main.host,
        "address": main.running.site.address,
        "page": main.material.page.name,
        "run_delay_ns": resources.run_delay_ns("server"),
        "wall_ns": wall_ns,
    }
    if others:
        details["beside"] = {
            each.host: {"address": each.running.site.address, "cpu_ns": resources.cpu_used_ns(f"server {each.host}")}
            for each in others
        }
    return details


def link_summaries(
    links: dict[Wire, EngineProgram],
    summaries: dict[Wire, LinkSummary | None],
    resources: ResourceObserver,
    wall_ns: int,
) -> Links:
    """``link_json``: what the link of each wire says, and how long it waited for a core."""
    by_wire: dict[str, LinkSummary] = {}
    for wire, process in links.items():
        summary = summaries[wire]
        if summary is not None:
            beside_link(summary, resources.run_delay_ns(process.name), wall_ns)
            by_wire[wire.name] = summary
    return Links(links=by_wire)


def own_cpu_ns(resources: ResourceObserver) -> int:
    """CPU time of this process and of what it runs for the trial as of the last reading, without driver and browser."""
    latest = resources.latest_cpu_ns()
    return time.process_time_ns() + sum(cpu for role, cpu in latest.items() if role not in ("driver", "client"))


def ended_cpu_ns(driver: EngineProgram) -> int:
    """Wait for the end of a driver; CPU time of it and of everything it started, the browser too (getrusage(2))."""

    def reaped_ns() -> int:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return int((used.ru_utime + used.ru_stime) * 1e9)

    before = reaped_ns()
    driver.wait_end(_END_S)
    driver.close()
    return reaped_ns() - before


def add_driver_cpu(load: LoadSummary | None, driven_cpu_ns: int) -> None:
    """Separate what the driver used from what the browser did."""
    if load is not None:
        load.driver_cpu_ns = max(0, driven_cpu_ns - load.cpu_ns)
