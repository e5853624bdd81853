"""Three places of the world, an sshd on each, and one site that they reach over paths of their own.

Runs inside the sandbox, as root. The user sits at a fourth host, which reaches the places and not the site.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.lab.three_hosts import HERE, ThreeHosts, stand, surroundings
from trifecta.contract.link import LinkReady
from trifecta.contract.origin import OriginConfig, OriginReady
from trifecta.design.study import path
from trifecta.lab.certificates import make_certificates
from trifecta.lab.host_graph import host_graph
from trifecta.lab.names import Names
from trifecta.lab.paths import link_config
from trifecta.lab.place import LocalPlace
from trifecta.lab.topology import Wire

SITE, NAME, PORT = "site", "www.site.lab", 8443
TRIPS_MS = {"frankfurt": 20, "saopaulo": 50, "singapore": 100}
"""Of the path between a place and the site, there and back."""


@contextmanager
def three_places(folder: Path) -> Iterator[tuple[ThreeHosts, Path]]:
    """The hosts, and the file of the authority that the site's certificate is from. All of them know its name."""
    surroundings()
    wires = [Wire(place, SITE, impaired=True) for place in TRIPS_MS]
    with ExitStack() as stack:
        world = [HERE, *TRIPS_MS, SITE]
        lab = stack.enter_context(host_graph(world, [*(Wire(HERE, place) for place in TRIPS_MS), *wires]))
        address = lab.address(SITE)
        stack.enter_context(Names(lab.hosts.values(), {NAME: (address,)}))
        for wire in wires:
            link = stack.enter_context(LocalPlace(lab.middle(wire)).start("link", folder / f"link-{wire.a}.log"))
            link.configure(link_config(path(wire.a, rtt=f"{TRIPS_MS[wire.a]} ms").spec(), 1))
            link.wait_ready(LinkReady, 10)
        made = make_certificates(folder / "pki", [NAME], [address])
        origin = stack.enter_context(LocalPlace(lab.host(SITE)).start("origin", folder / "origin.log"))
        files = {"certificate_file": str(made.chain), "key_file": str(made.key)}
        origin.configure(OriginConfig(address=address, port=PORT, alt_svc=True, **files))
        origin.wait_ready(OriginReady, 10)
        hosts = ThreeHosts(folder, lab, tuple(TRIPS_MS))
        stand(stack, hosts, {})
        yield hosts, made.authority
