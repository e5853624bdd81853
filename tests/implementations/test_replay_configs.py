"""What adapters write for a page archive, without the programs themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.implementations.fake_program import make_site
from tests.workloads.odd_page import write_odd_page
from trifecta.implementations.server import ServerOptions, Unsupported
from trifecta.implementations.servers import caddy_replay
from trifecta.implementations.servers.nginx_replay import ReplayConfig
from trifecta.implementations.servers.replaying import keys
from trifecta.pages.archive import Page, Response


def _page(*targets: str, method: str = "GET", headers: tuple[tuple[str, str], ...] = ()) -> Page:
    responses = tuple(Response(method, f"https://a.lab{target}", 200, headers, None, 0, "other") for target in targets)
    return Page("x", "", f"https://a.lab{targets[0]}", {"kind": "folder"}, responses)


def _nginx(tmp_path: Path, page: Page, options: ServerOptions | None = None) -> tuple[str, str]:
    site = replace(make_site(tmp_path, "nginx", 443), replay=tmp_path / "page")
    lines = ReplayConfig(site, options or ServerOptions(), page)
    return "\n".join(lines.http), "\n".join(lines.server)


def test_head_is_a_get_unless_it_was_recorded() -> None:
    page = _page("/")
    assert keys(page) == {"GET a.lab /": 0, "HEAD a.lab /": 0}
    both = replace(page, responses=(*page.responses, replace(page.responses[0], method="HEAD")))
    assert keys(both) == {"GET a.lab /": 0, "HEAD a.lab /": 1}


def test_nginx_tells_paths_apart_by_case(tmp_path: Path) -> None:
    http, server = _nginx(tmp_path, _page("/", "/a.css", "/A.css"))
    assert '"GET a.lab /" 0;' in http
    assert '"~^GET\\\\ a\\\\.lab\\\\ /a\\\\.css$" 1;' in http
    assert '"~^GET\\\\ a\\\\.lab\\\\ /A\\\\.css$" 2;' in http
    assert 'if ($request_uri != "/A.css") { rewrite ^ /=missing last; }' in server


def test_nginx_takes_no_value_for_a_variable(tmp_path: Path) -> None:
    long = "v" * 2500
    http, server = _nginx(tmp_path, _page("/", headers=(("x-a", '$host "b" \\'), ("x-long", long))))
    assert 'geo $replay_0 { default "$host \\"b\\" \\\\"; }' in http
    assert 'add_header "x-a" "${replay_0}" always;' in server
    assert 'add_header "x-long" "${replay_1}${replay_2}${replay_3}" always;' in server
    assert max(map(len, http.splitlines())) < 4096
    assert "$host" not in server


def test_nginx_cannot_read_a_very_long_url(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="nginx cannot read a URL of 5011 characters; leave it out, or use server"):
        _nginx(tmp_path, _page("/", "/" + "x" * 4999))


def test_alt_svc_is_offered_only_when_asked_for(tmp_path: Path) -> None:
    http, server = _nginx(tmp_path, _page("/"))
    assert "$alt_svc" not in http + server
    assert "alt-svc" not in http + server
    folder = tmp_path / "again"
    folder.mkdir()
    http, server = _nginx(folder, _page("/"), ServerOptions(alt_svc=True))
    assert "map $server_protocol $alt_svc { HTTP/3.0 ''; default 'h3=\":443\"; ma=86400'; }" in http
    assert server.count("add_header alt-svc $alt_svc always;") == 3


def test_caddy_finds_every_response_by_two_looks(tmp_path: Path) -> None:
    page = write_odd_page(tmp_path / "page", 200)
    site = replace(make_site(tmp_path, "caddy", 443), replay=tmp_path / "page")
    late, find, *groups, known, missing = caddy_replay.routes(site, ServerOptions(), page)
    assert late["handle"][0]["response"]["delete"] == ["Alt-Svc", "Server"]
    table = {entry["input"]: entry["outputs"] for entry in find["handle"][0]["mappings"]}
    for number, response in enumerate(page.responses):
        group, member = table[" ".join(response.key)]
        inside = groups[int(group)]["handle"][0]["routes"][int(member)]
        assert inside["match"] == [{"vars": {"member": [member]}}]
        assert response.body is None or inside["handle"][0]["uri"] == f"/{response.body}", number
    assert known["match"] == [{"path": ["/.well-known/trifecta"]}]
    assert missing["handle"][0]["status_code"] == 404
    json.dumps(groups)
    offered = caddy_replay.routes(site, ServerOptions(alt_svc=True), page)
    assert offered[0]["handle"][0]["response"]["delete"] == ["Server"]
