"""From looks at a page to a study: third parties, how many visits, what is left out, and what is coming."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.workloads.test_far_choose import A, place, wanted
from trifecta.design.emit import to_yaml
from trifecta.design.errors import CannotError, UserError
from trifecta.design.study_file import parse_study
from trifecta.implementations.registry import BROWSERS
from trifecta.implementations.server import Unsupported
from trifecta.report.far.words import coming_line, page_lines, robots_line, too_few_line
from trifecta.workloads.far import names, page_configs, supported
from trifecta.workloads.far.choose import possible
from trifecta.workloads.far.choose_page import choice_of_pages, document
from trifecta.workloads.far.names import Resolved
from trifecta.workloads.far.page_look import no_room, refuse
from trifecta.workloads.far.traffic_estimate import traffic_estimate
from trifecta.workloads.stat import read_url

OTHERS = ("cdn.b.example", "fonts.c.example")


def seen(requests=20, octets=600_000, browser="chromium", **changes):
    return {
        "url": A.url, "address": "192.0.2.1", "browser": browser, "protocol": "h2", "error": None,
        "requests": requests, "octets": octets, "load_ns": 900_000_000, "third_parties": {}, "unnamed": {},
        "impatient": [],
    } | changes  # fmt: skip


def settle(*pages, third_parties=(), asked=None, **errors):
    asked = asked or wanted()
    return choice_of_pages(asked, possible(asked, [place(**errors)]), third_parties, pages or (seen(),))


def study_of(choice, asked=None, browsers=("chromium",)):
    return parse_study(to_yaml(document(asked or wanted(), choice, browsers)), "race")


def test_a_page_of_its_own_host_alone_is_compared_over_all_protocols():
    choice = settle()
    study = study_of(choice)
    assert study.factors["protocol"] == ("h1", "h2", "h3")
    assert study.factors["client"] == ("chromium",)
    assert study.workload.third_parties is None
    assert (study.workload.url, study.workload.address) == (A.url, "192.0.2.1")
    assert study.baseline.level == "h2"


def test_beside_third_parties_http_1_1_is_left_out_and_it_is_said():
    choice = settle(third_parties=OTHERS)
    assert choice.base.protocols == ("h2", "h3")
    assert "HTTP/1.1: the page asks 2 other hosts" in choice.base.left_out[-1]
    assert study_of(choice).workload.hosts_beside == OTHERS


def test_where_only_http_2_is_left_nothing_can_be_compared():
    with pytest.raises(CannotError, match=r"only HTTP/2 is left to compare"):
        settle(third_parties=OTHERS, h3="connect_timeout")


def test_visits_are_as_many_as_the_caps_let_decide():
    # Three visits a trial, four trials a block, six blocks: 72 visits, besides the looks.
    assert settle(seen(requests=13)).visits == (2, 1)
    assert settle(seen(requests=14)).visits == (1, 1)
    assert settle(seen(requests=60)).visits == (1, 1)
    own = wanted(owned=True)
    assert settle(seen(requests=60), asked=own).visits == (2, 1)
    assert settle(seen(requests=13), seen(requests=13, browser="firefox")).visits == (1, 1)


def test_a_page_of_which_not_one_block_fits_is_refused():
    with pytest.raises(CannotError, match=r"a visit makes 130 requests, and the 8 visits of a block"):
        settle(seen(requests=130))
    assert "the most in all" in no_room(seen(octets=60_000_000), 8, wanted().workload.manners)


def test_what_is_coming_is_said_with_the_hosts_and_whether_it_can_decide():
    choice = settle(seen(requests=30), third_parties=OTHERS)
    one = traffic_estimate(study_of(choice), choice.octets, choice.requests)
    assert one.hosts == ("a.example", *OTHERS)
    # Two visits a trial, three trials a block: 180 requests; looks: three of eight, four visits, two robots.txt.
    looks = 24 + 4 * 30 + 12
    assert one.blocks == (1000 - looks) // 180
    assert one.needed == 6
    assert one.fewest_requests == one.most_requests == 1000
    assert one.time_ns[0] == 6 * 6 * 15_000_000_000
    (said,) = too_few_line(one.blocks, one.needed)
    assert f"The caps allow {one.blocks} blocks of every cell, and nothing is decided before 6" in said
    assert too_few_line(6, 6) == []


def test_of_a_study_of_which_nothing_was_seen_the_caps_are_said():
    one = traffic_estimate(study_of(settle()))
    assert (one.fewest_requests, one.most_requests, one.blocks) == (0, 1000, None)
    assert too_few_line(one.blocks, one.needed) == []
    takes = (one.fewest_requests, one.most_requests), one.most_bytes, one.time_ns, one.manners
    line = coming_line(one.hosts, *takes, at_once=True)
    assert line.startswith("This sends up to 1,000 requests to a.example, and 200 MB both ways at most, in ")
    assert "no more than 2/s on average, since a visit requests its page at once, and 20 MB a minute" in line


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"impatient": ["cdn.b.example"]}, "cdn.b.example answered 429 or 503, which asks to slow down"),
        ({"error": "quic:transport"}, "the visit failed with quic:transport"),
        ({"octets": 21_000_000}, r"a visit took 21\.0 MB, and the limit is 20 MB a minute"),
    ],
)
def test_a_page_that_cannot_be_measured_is_refused(changes, words):
    with pytest.raises(CannotError, match=words):
        refuse(seen(**changes), wanted().workload.manners)


def test_a_visit_in_words():
    beside = seen(third_parties={"cdn.b.example": 3}, unnamed={"late.d.example": 1})
    assert page_lines(beside) == [
        f"{A.url} at 192.0.2.1 in chromium: loaded in 900 ms over HTTP/2, 20 requests and about 600 kB.",
        "Third parties, not forced, with their requests: cdn.b.example (3).",
        "Not contacted, because they were named too late or have no address: late.d.example.",
    ]
    asked = {"url": A.url, "robots": "https://a.example/robots.txt", "status": 404, "rule": None}
    assert robots_line(asked) == f"https://a.example/robots.txt is not there ({A.url})."


def test_every_host_of_a_page_has_an_address_of_the_blocks_family_if_it_can(monkeypatch):
    known = {
        "both.b.example": Resolved(("2001:db8::2", "192.0.2.2"), 1),
        "six.c.example": Resolved(("2001:db8::3",), 1),
    }

    def resolve(host, port):
        if host not in known:
            raise CannotError("no such name")
        return known[host]

    monkeypatch.setattr(names, "resolve", resolve)
    found = page_configs.addresses_of(A, "192.0.2.1", ("a.example", "both.b.example", "six.c.example", "no.d.example"))
    assert found == {"a.example": "192.0.2.1", "both.b.example": "192.0.2.2", "six.c.example": "2001:db8::3"}


def test_a_page_is_visited_by_name_with_few_authorities(tmp_path):
    with pytest.raises(UserError, match="visited by its host's name"):
        supported.refuse_literal(read_url("https://192.0.2.1/"))
    certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    few, many = tmp_path / "few.pem", tmp_path / "many.pem"
    few.write_text(certificate * 8)
    many.write_text(certificate * 9)
    supported.refuse_many(few)
    with pytest.raises(UserError, match="has 9 certificates, and a browser is given 8 at most"):
        supported.refuse_many(many)


class Here:
    """A browser that is there."""

    def find(self):
        return "1"


class Missing:
    def find(self):
        raise Unsupported("it is not installed; run: sudo apt-get install -y it")


def test_root_visits_pages_of_others_in_no_browser_without_a_sandbox(monkeypatch):
    browsers = {"chromium": Here(), "firefox": Here(), "missing": Missing()}
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(CannotError, match="chromium has no sandbox of its own where root runs it"):
        supported.refuse_browsers(["chromium"], browsers, owned=False)
    supported.refuse_browsers(["chromium"], browsers, owned=True)
    supported.refuse_browsers(["firefox"], browsers, owned=False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    supported.refuse_browsers(["chromium"], browsers, owned=False)
    with pytest.raises(CannotError, match="it is not installed"):
        supported.refuse_browsers(["missing"], browsers, owned=False)
    with pytest.raises(UserError, match="unknown client 'netscape'"):
        supported.refuse_browsers(["netscape"], BROWSERS, owned=False)


def test_authorities_are_in_the_study_where_they_were_given():
    choice = settle()
    assert study_of(choice).workload.ca is None
    given = replace(wanted(), authorities=Path("ca.pem"), own_authorities=True)
    assert study_of(choice, given).workload.ca == str(Path("ca.pem").resolve())
