"""Checks of visits to pages elsewhere: what may change, what third parties spoke, and what is nobody's fault here."""

import dataclasses

import pytest

from tests.analysis.checks.sound import Facts
from tests.analysis.checks.test_far_checks import MACHINE, fields
from trifecta.analysis.checks import TRIAL_CHECKS, check_trial, is_valid
from trifecta.analysis.checks.evidence import Evidence
from trifecta.analysis.checks.visits import FetchResult, Visit, Visits
from trifecta.design import plan
from trifecta.design.study_file import parse_study

URL = "https://a.example/"
STUDY = parse_study(
    f"study: page\nworkload: {{kind: far-page, url: '{URL}', third_parties: cdn.b.example}}\n"
    "factors: {protocol: [h2, h3]}\n",
    "p",
)
MS = 1_000_000
GOT = {f"GET {URL}{number}.css": FetchResult(1, 200, 1000) for number in range(50)}
STRANGER = "https://cdn.b.example/x.js"


def visits(protocol, fetched=None, cpu_ns=100 * MS, **changes):
    page = [Visit(n, load_ns=900 * MS, cpu_ns=cpu_ns, fetched=fetched or GOT, first_protocol=protocol) for n in (1, 2)]
    given = {
        "warmup_visits": 1, "fetches": 100, "protocols": {protocol: 100}, "examples": {protocol: (URL,)},
        "third_parties": ("cdn.b.example",), "third_party_protocols": {"h2": 4},
    }  # fmt: skip
    return Visits(tuple(page), **(given | changes))


def evidence(arm="h3", siblings=(), load=None, cipher="TLS_AES_128_GCM_SHA256", **changes):
    (cell,) = plan.cells(STUDY)
    trial = next(one for one in plan.block_trials(STUDY, cell, 0, 0) if one.arm == arm)
    protocol = trial.protocol
    told = {
        "client": "chromium", "version": "156.0", "declared": {}, "ended": "requests", "started_ns": 1_010,
        "ended_ns": 1_000_000, "wall_ns": 1_000_000, "cpus": 2, "stray_lookups": 0, "tcp": None, "quic": None,
        "response_fields": fields(),
    }  # fmt: skip
    samples = Facts(
        samples=2, warmup_samples=1, protocols={protocol: 2}, tls_versions={"1.3": 2}, ciphers={cipher: 2},
        statuses={"200": 2}, bytes_in={50_000: 2}, handshakes={}, first_half_p50_ns=None, second_half_p50_ns=None,
    )  # fmt: skip
    given = {"visits": visits(protocol)} | changes
    return Evidence(
        study=STUDY,
        trial=trial,
        row={"started_ns": 1_000, "ended_ns": 1_000_001_000, "latency_p50_ns": 900 * MS},
        samples=samples,
        load=told | (load or {}),
        server={"name": "elsewhere", "url": URL, "address": "192.0.2.1", "cpu_ns": None},
        machine=MACHINE,
        transport={"softnet_drops": 0},
        facts={"clocksource": "tsc"},
        siblings=siblings,
        **given,
    )


def judge(name, *args, **changes):
    (result,) = TRIAL_CHECKS[name].function(evidence(*args, **changes))
    return result


def test_a_sound_trial_counts_and_says_what_is_unseen():
    results = check_trial(evidence(siblings=(evidence("h2"), evidence("h2#aa"))))
    assert is_valid(results), [(one.check, one.evidence) for one in results if one.status == "fail"]
    assert [(one.check, one.evidence) for one in results if one.status == "warn"] == []
    unseen = {one.check for one in results if one.status == "unknown" and one.evidence == "not observable from here"}
    assert unseen == {"reordering", "delayed_ack", "conntrack", "service", "path"}


@pytest.mark.parametrize(("less", "status"), [(0, "pass"), (1, "warn"), (9, "warn"), (11, "fail")])
def test_a_page_may_change_but_not_by_more_than_a_fifth(less, status):
    other = dict(list(GOT.items())[less:])
    result = judge("same_page", visits=visits("h3", other), siblings=(evidence("h2"),))
    assert result.status == status, result.evidence
    if less:
        left = f"{50 - less} requests for {(50 - less) * 1000:,} B"
        assert f"visit 1 made {left}, h2 visit 1 50 for 50,000 B" in result.evidence


def test_what_the_browsers_cache_answers_within_a_visit_says_nothing_of_the_profile():
    assert judge("same_page", visits=visits("h3", from_cache=3)).status == "pass"


def test_what_fails_in_every_arm_is_the_pages_own_and_in_one_alone_is_not():
    own, theirs = ({"failed": {url: 2}, "failed_classes": {"reset": 2}} for url in (f"{URL}gone", STRANGER))
    assert judge("same_page", visits=visits("h3", **own)).status == "warn"
    same = evidence("h2", visits=visits("h2", **own))
    assert judge("same_page", visits=visits("h3", **own), siblings=(same,)).status == "warn"
    alone = judge("same_page", visits=visits("h3", **own), siblings=(evidence("h2"),))
    assert alone.status == "fail"
    assert f"requests to the page's host failed here or in h2 alone ({URL}gone)" in alone.evidence
    assert judge("same_page", siblings=(same,)).status == "fail"
    assert judge("same_page", visits=visits("h3", **theirs), siblings=(evidence("h2"),)).status == "warn"


def test_other_protocols_of_third_parties_are_warned_of_and_of_the_page_they_fail():
    mixed = visits("h3", third_party_protocols={"h2": 3, "h3": 1})
    result = judge("protocol", visits=mixed, siblings=(evidence("h2"),))
    assert (result.status, result.evidence) == ("warn", "third parties spoke h2 3, h3 1 here, h2 4 in h2")
    more = visits("h3", third_party_protocols={"h2": 5})
    assert judge("protocol", visits=more, siblings=(evidence("h2"),)).status == "pass"
    assert judge("protocol", visits=visits("h3", third_parties=(), third_party_protocols={})).status == "pass"
    stray = visits("h3", protocols={"h3": 99, "h2": 1}, examples={"h3": (), "h2": (URL,)})
    assert judge("protocol", visits=stray).status == "fail"


def test_a_browser_at_its_limit_is_warned_of_since_no_path_can_be_made_slower():
    result = judge("browser", visits=visits("h3", cpu_ns=1750 * MS))
    assert result.status == "warn"
    assert result.remedy == "use a machine with more cores"
    assert judge("browser").status == "pass"


def test_names_that_were_not_counted_are_said():
    result = judge("browser", load={"stray_lookups": 2})
    assert result.status == "warn"
    assert "third_parties" in result.remedy


def test_the_servers_choice_of_a_cipher_suite_is_warned_of():
    other = evidence("h2", cipher="TLS_AES_256_GCM_SHA384")
    result = judge("parity", siblings=(other,))
    assert result.status == "warn"
    assert "cipher suite is AES_128_GCM here and AES_256_GCM in h2" in result.evidence


def test_places_and_caches_of_the_documents_are_compared():
    other = evidence("h2", load={"response_fields": fields(cf_ray={"8f1e-AMS": 4})})
    result = judge("answers", siblings=(other,))
    assert (result.status, "place FRA here, AMS in h2" in result.evidence) == ("fail", True)


def test_other_browsers_of_a_block_are_not_compared():
    firefox = evidence("h2", visits=visits("h2", {"GET https://a.example/": FetchResult(1, 200, 9)}))
    apart = plan.cell_of(firefox.trial.cell.levels | {"client": "firefox"})
    other = dataclasses.replace(firefox, trial=dataclasses.replace(firefox.trial, cell=apart))
    assert judge("same_page", siblings=(other,)).status == "pass"
