"""robots.txt as RFC 9309 has it: which rule decides, what an answer without one means, and that it is read once."""

from pathlib import Path

import pytest

from trifecta.design.errors import CannotError
from trifecta.design.manners import TO_OTHERS
from trifecta.workloads.far import robots
from trifecta.workloads.far.rate_limiter import RateLimiter
from trifecta.workloads.stat import read_url

PAGE = read_url("https://a.example/shop/cart?id=7")
FIRST_FITS = "User-agent: *\nAllow: /\nDisallow: /shop/\n"


def said(text, path="/shop/cart"):
    rule = robots.rule_for(text, path)
    return None if rule is None else rule.line


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", None),
        ("User-agent: *\nDisallow:\n", None),
        ("User-agent: *\nDisallow: /\n", "Disallow: /"),
        (FIRST_FITS, "Disallow: /shop/"),  # the longest, not the first
        ("User-agent: *\nDisallow: /shop\nAllow: /shop\n", "Allow: /shop"),  # of two of a length that which allows
        ("User-agent: *\nDisallow: /sho*t\n", "Disallow: /sho*t"),
        ("User-agent: *\nDisallow: /*art$\n", "Disallow: /*art$"),
        ("User-agent: *\nDisallow: /*shop$\n", None),
        ("User-agent: *\nDisallow: /shop$\n", None),
        ("User-agent: *\nDisallow: /SHOP\n", None),
        ("User-agent: *\nDisallow: /%73hop # %73 is an s\n", "Disallow: /%73hop"),
        ("Disallow: /\nUser-agent: *\n", None),  # for nobody
        ("User-agent: other\nDisallow: /\n", None),
        ("User-agent: other\nUser-agent: *\n\nDisallow: /\n", "Disallow: /"),  # an empty line ends no group
        ("User-agent: *\nDisallow: /\n\nUser-agent: TriFecta/2\nAllow: /shop\n", "Allow: /shop"),
        ("User-agent: *\nDisallow: /\nUser-agent: trifecta\nDisallow: /x\n", None),  # ours count alone
        ("User-agent: trifecta-bot\nDisallow: /\n", None),
        ("User-agent: *\nAllow: /a\nUser-agent: b\nAllow: /\nUser-agent: *\nDisallow: /shop\n", "Disallow: /shop"),
        ("\ufeffUser-agent: *\r\nDisallow: /shop\r\n", "Disallow: /shop"),
        ("Sitemap: https://a.example/s\nUser-agent: *\nCrawl-delay: 5\nDisallow: /shop", "Disallow: /shop"),
    ],
)
def test_the_rule_that_decides(text, rule):
    assert said(text) == rule


def test_the_query_belongs_to_the_path_and_robots_txt_may_be_read():
    text = "User-agent: *\nDisallow: /*?id=\nDisallow: /r\n"
    assert said(text, PAGE.path) == "Disallow: /*?id="
    assert said(text, "/robots.txt") is None
    assert said("User-agent: *\nDisallow: /ü\n", "/%C3%BC/x") == "Disallow: /ü"


def test_a_pattern_of_many_stars_takes_no_time():
    hostile = "User-agent: *\nDisallow: /" + "*a" * 2000 + "b$\n"
    assert said(hostile, "/" + "a" * 5000) is None


def answers(monkeypatch, *queue):
    """What the host answers in turn: status, where it leads, content. An error is raised."""
    asked = []
    left = list(queue)

    def get(where, address, authorities, keeper):
        asked.append((where.url, address))
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(robots, "_get", get)
    monkeypatch.setattr(robots, "OF_THIS_PROCESS", {})
    return asked


def read(*addresses):
    return robots.read(PAGE, addresses or ("192.0.2.1",), Path("ca.pem"), RateLimiter(TO_OTHERS)).about(PAGE)


def test_it_is_read_once_by_a_process(monkeypatch):
    asked = answers(monkeypatch, (200, "", FIRST_FITS.encode()))
    first = read()
    assert read() == first
    assert asked == [("https://a.example/robots.txt", "192.0.2.1")]
    assert first == {
        "url": PAGE.url, "robots": "https://a.example/robots.txt", "status": 200, "rule": "Disallow: /shop/"
    }  # fmt: skip
    with pytest.raises(CannotError) as raised:
        robots.refuse_forbidden(first)
    assert "https://a.example/robots.txt forbids it to trifecta (Disallow: /shop/)" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_where_there_is_none_all_is_allowed(monkeypatch):
    answers(monkeypatch, (404, "", b"User-agent: *\nDisallow: /"))
    seen = read()
    assert (seen["status"], seen["rule"]) == (404, None)
    robots.refuse_forbidden(seen)


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ([(500, "", b"")], "was answered 500, which forbids everything"),
        ([(429, "", b"")], "which asks to slow down"),
        ([(301, "http://b.example/robots.txt", b"")], "which is not asked for"),
        ([(301, "/robots.txt", b"")] * 6, "redirects without end"),
        ([robots._Unreachable("no word")], "no word"),
    ],
)
def test_what_cannot_be_read_forbids_everything(monkeypatch, queue, words):
    answers(monkeypatch, *queue)
    with pytest.raises(CannotError, match=words):
        read()
    assert not robots.OF_THIS_PROCESS


def test_another_address_is_asked_where_one_does_not_answer_and_redirects_are_followed(monkeypatch):
    moved = (301, "https://a.example/other.txt", b"")
    asked = answers(monkeypatch, robots._Unreachable("no word"), moved, (200, "", b""))
    assert read("192.0.2.1", "192.0.2.2")["robots"] == "https://a.example/other.txt"
    assert asked == [
        ("https://a.example/robots.txt", "192.0.2.1"),
        ("https://a.example/robots.txt", "192.0.2.2"),
        ("https://a.example/other.txt", "192.0.2.2"),
    ]
