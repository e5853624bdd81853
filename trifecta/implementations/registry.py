"""The tables of servers, clients, browsers, services and recipes: a new one is a file of its own and a line here.

A line names a class, or an object, as entry points do (``module:attribute``), so that nothing is imported before it is
used. Packages outside this one add to the tables with entry points of the groups ``trifecta.servers``,
``trifecta.clients``, ``trifecta.browsers``, ``trifecta.services`` and ``trifecta.recipes``
(https://packaging.python.org/en/latest/specifications/entry-points/).
"""

from __future__ import annotations

from trifecta.design.factors import DEFAULT_CLIENT
from trifecta.design.services import SERVER_LEVEL
from trifecta.implementations.browser import BrowserAdapter
from trifecta.implementations.client import ClientAdapter
from trifecta.implementations.recipe import Recipe
from trifecta.implementations.server import ServerAdapter
from trifecta.implementations.services.program import ServicesProgram
from trifecta.implementations.table import (
    BrokenBrowser,
    BrokenClient,
    BrokenRecipe,
    BrokenServer,
    BrokenServices,
    Table,
)

SERVERS: Table[ServerAdapter] = Table(
    "server",
    {
        "origin": "trifecta.implementations.servers.origin:Origin",
        "nginx": "trifecta.implementations.servers.nginx:Nginx",
        "haproxy": "trifecta.implementations.servers.haproxy:HAProxy",
        "caddy": "trifecta.implementations.servers.caddy:Caddy",
        "caddy-2022": "trifecta.implementations.servers.caddy_2022:Caddy2022",
        "envoy": "trifecta.implementations.servers.envoy:Envoy",
        "hypercorn": "trifecta.implementations.servers.hypercorn:Hypercorn",
        "hypercorn-2023": "trifecta.implementations.servers.hypercorn_2023:Hypercorn2023",
        "quic-go": "trifecta.implementations.servers.quic_go:QuicGo",
        "quiche": "trifecta.implementations.servers.quiche:Quiche",
    },
    ServerAdapter,
    BrokenServer,
)

CLIENTS: Table[ClientAdapter] = Table(
    "client",
    {
        "curl": "trifecta.implementations.clients.curl:Curl",
        "h2load": "trifecta.implementations.clients.h2load:H2load",
        "go-client": "trifecta.implementations.clients.go_client:GoClient",
        "go-client-own-tls": "trifecta.implementations.clients.go_client:GoClientOwnTLS",
        "python-client": "trifecta.implementations.clients.python_client:PythonClient",
        "python-client-2023": "trifecta.implementations.clients.python_client_2023:PythonClient2023",
    },
    ClientAdapter,
    BrokenClient,
    reserved=(DEFAULT_CLIENT,),  # the engine's own: it needs no adapter and is always there
)

# Only where a study or a command names them, never by ``any``: what is wrong on purpose, to show what a check detects,
# and programs of another year, whom nobody means today.
ONLY_BY_NAME = frozenset({"caddy-2022", "go-client-own-tls", "hypercorn-2023", "python-client-2023"})

# Clients of the workloads page and video.
BROWSERS: Table[BrowserAdapter] = Table(
    "browser",
    {
        "chromium": "trifecta.implementations.browsers.chromium:Chromium",
        "firefox": "trifecta.implementations.browsers.firefox:Firefox",
    },
    BrowserAdapter,
    BrokenBrowser,
)

# Programs that are the services of the workloads chain, fan-in and sba-registration.
SERVICES: Table[ServicesProgram] = Table(
    "service",
    {
        "go-services": "trifecta.implementations.services.go_services:GoServices",
        "go-services-2019": "trifecta.implementations.services.go_services:GoServices2019",
    },
    ServicesProgram,
    BrokenServices,
    reserved=(SERVER_LEVEL,),  # the engine's own
)

# By the name of the server or client that it brings, or of what a workload needs. A recipe is an object beside its
# adapter, or a class.
RECIPES: Table[Recipe] = Table(
    "recipe",
    {
        "envoy": "trifecta.implementations.servers.envoy:RECIPE",
        "hypercorn": "trifecta.implementations.servers.hypercorn:RECIPE",
        "hypercorn-2023": "trifecta.implementations.servers.hypercorn_2023:RECIPE",
        "nginx": "trifecta.implementations.recipes.debian:NGINX",
        "haproxy": "trifecta.implementations.recipes.debian:HAPROXY",
        "curl": "trifecta.implementations.recipes.debian:CURL",
        "caddy-2022": "trifecta.implementations.servers.caddy_2022:RECIPE",
        "quic-go": "trifecta.implementations.servers.quic_go:RECIPE",
        "quiche": "trifecta.implementations.servers.quiche:RECIPE",
        "go-client": "trifecta.implementations.clients.go_client:RECIPE",
        "python-client": "trifecta.implementations.clients.python_client:RECIPE",
        "python-client-2023": "trifecta.implementations.clients.python_client_2023:RECIPE",
        "go-services": "trifecta.implementations.services.go_services:RECIPE",
        "go-services-2019": "trifecta.implementations.services.go_services:RECIPE_2019",
        "recorder": "trifecta.implementations.recipes.recorder:RECIPE",
        "page-blocks": "trifecta.implementations.recipes.page_blocks:PageBlocks",
        "clip-bbb": "trifecta.video.recipes:CLIP_BBB",
        "hlsjs": "trifecta.video.recipes:HLS_JS",
        "nginx-rtmp": "trifecta.video.recipes:NGINX_RTMP",
    },
    Recipe,
    BrokenRecipe,
)
