"""Who is refused: without the token, from another site, under another name, by what would change something."""

from __future__ import annotations

import re

import pytest

from tests.ui.serving import Served
from trifecta.ui.access_control import CHANGE_HEADER

PATHS = ("/", "/api/runs", "/api/run?name=first", "/api/live?name=first", "/api/jobs", "/assets/js/main.js", "/none")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("cookie", ["", "trifecta-0=x", "trifecta-{port}=wrong", "trifecta-{port}", "\x7f;;=="])
def test_without_the_token_nothing_is_answered(served: Served, path: str, cookie: str) -> None:
    answer = served.get(path, cookie=cookie.format(port=served.port))
    assert answer.status == 403
    assert answer.text.count("\n") == 1 and "no token" in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("query", ["?token=", "?token=wrong", "?token={entry}x", "?other={entry}"])
def test_a_wrong_token_opens_nothing(served: Served, query: str) -> None:
    answer = served.get(f"/{query.format(entry=served.known.entry)}", cookie="")
    assert answer.status == 403 and "set-cookie" not in answer.headers


def test_the_token_of_the_address_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get(
    served: Served,
) -> None:
    answer = served.get(f"/?token={served.known.entry}", cookie="")
    assert answer.status == 200
    assert answer.headers["set-cookie"] == f"{served.cookie}; Path=/; HttpOnly; SameSite=Strict"
    assert served.known.entry not in answer.text and served.known.change in answer.text
    assert served.get(f"/api/runs?token={served.known.entry}", cookie="").status == 403  # of the page alone


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}", ""]
)
def test_another_host_is_refused_as_a_name_that_was_bound_to_this_machine(served: Served, host: str) -> None:
    answer = served.get("/api/runs", host=host.format(port=served.port))
    assert answer.status == 403 and "the host is not" in answer.text


def test_two_hosts_are_refused(served: Served) -> None:
    known = {"host": f"127.0.0.1:{served.port}", "Host": f"127.0.0.1:{served.port}", "cookie": served.cookie}
    assert served.raw("GET", "/api/runs", known).status in (400, 403)


def test_localhost_is_this_machine(served: Served) -> None:
    assert served.get("/api/runs", host=f"localhost:{served.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
def test_another_site_is_refused_even_with_the_cookie(served: Served, headers: dict[str, str]) -> None:
    answer = served.get("/api/runs", **{name: value.format(port=served.port) for name, value in headers.items()})
    assert answer.status == 403 and answer.text == "refused: another site asks\n"


@pytest.mark.parametrize("path", ["/api/stop", "/api/resume", "/api/start"])
@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({CHANGE_HEADER: ""}, "no token in the header"),
        ({CHANGE_HEADER: "wrong"}, "no token in the header"),
        ({"origin": ""}, "only this page"),
        ({"origin": "http://evil.example"}, "another site"),
        ({"cookie": ""}, "no token"),
    ],
)
def test_what_changes_something_needs_its_own_token_and_origin(
    served: Served, path: str, headers: dict[str, str], said: str
) -> None:
    answer = served.post(path, {"name": "first"}, **headers)
    assert answer.status == 403 and said in answer.text
    assert served.get("/api/jobs").json == {"jobs": []}


def test_nothing_is_changed_by_another_method(served: Served) -> None:
    own = {"host": f"127.0.0.1:{served.port}", "cookie": served.cookie, CHANGE_HEADER: served.known.change}
    assert served.get("/api/stop").status == 405
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert served.raw(method, "/api/stop", own | {"origin": f"http://127.0.0.1:{served.port}"}).status == 403


@pytest.mark.parametrize("path", [*PATHS, "/report.css"])
def test_every_answer_has_the_policy_and_allows_no_other_origin(served: Served, path: str) -> None:
    if "live" in path:
        return
    headers = served.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert all(
        source in ("'self'", "'none'") or source.startswith("'sha256-") for source in re.findall(r"'[^']*'", policy)
    )
    assert "http:" not in policy and "*" not in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert not [name for name in headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    "path", ["/assets/../guard.py", "/assets/%2e%2e/guard.py", "/assets/..%2fguard.py", "/assets//etc/passwd"]
)
def test_no_file_beside_the_assets_is_served(served: Served, path: str) -> None:
    assert served.get(path).status == 404
