"""A campaign: studies put together from parts."""

import pytest

from trifecta import studies
from trifecta.design import plan
from trifecta.design.campaign import Depth, is_campaign, parse_campaign
from trifecta.design.errors import UserError

TEXT = studies.read_text(studies.campaigns()["bourbon2020"])


def read(depth="quick", **asked):
    return parse_campaign(TEXT, "bourbon2020.yaml", depth, **asked)


def test_the_study_has_its_eight_scenarios_and_all_of_its_tests():
    campaign = read("full")
    labels, tests = set(), set()
    for name, study in campaign.studies.items():
        for cell in plan.cells(study):
            labels.add(campaign.label(name, cell.levels))
            tests.add(campaign.test_names(name, cell.levels))
    distributed = {f"distributed_{number}{net}" for number in ("01", "02") for net in ("", "_delay", "_loss")}
    assert labels == {"single_01", "single_02"} | distributed
    assert tests == {"A1-A3", "A4-A6", "A7-A9", "B1-B3", "B4-B6", "B7-B9"}


def test_two_thousand_cycles_a_test_in_full():
    for study in read("full").studies.values():
        assert study.min_blocks == study.max_blocks
        assert study.min_blocks * study.workload.requests == 2_000


def test_a_scenario_is_what_the_study_says_it_is():
    study = read("full").studies["distributed_delay-A"]
    assert study.factors["connection"] == ("new",)
    assert study.workload.hosts == 4
    assert [impairment["kind"] for impairment in study.paths["lag"].forward] == ["loss", "delay", "jitter"]
    assert study.paths["lag"].forward[2]["reorder"] is True
    assert study.paths["lag-in-order"].forward[2]["reorder"] is False
    assert read("full").studies["distributed_loss-B"].paths["lossy"].forward[1] == {
        "kind": "corrupt",
        "probability": 0.01,
    }


def test_only_takes_studies_scenarios_suites_and_labels():
    assert list(read(only=["single"]).studies) == ["single-A", "single-B"]
    assert set(read(only=["B"]).suites.values()) == {"B"}
    half = read(only=["distributed_02_delay-A"])
    assert list(half.studies) == ["distributed_delay-A"]
    assert half.studies["distributed_delay-A"].factors["place"] == ("native",)
    both = read(only=["single_01-A", "single_02-A"])
    assert both.studies["single-A"].factors["place"] == ("docker-host", "native")
    with pytest.raises(UserError, match="no such study, scenario or suite; did you mean"):
        read(only=["singel"])


def test_an_override_reaches_every_study():
    assert {study.seed for study in read(overrides=["seed=7"]).studies.values()} == {7}


def test_a_fault_names_the_study_it_is_in():
    with pytest.raises(UserError, match=r"bourbon2020.yaml \(single-A\).*4 hosts|hosts") as caught:
        read(overrides=["workload.hosts=99"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("campaign: x\nsuites: {A: {}}\n", "'suites' and 'scenarios'"),
        ("campaign: x\nsuits: {A: {}}\n", "did you mean 'suites'"),
        ("campaign: x\nsuites: {A: {}}\nscenarios: {s: {}}\nquick: {B: {}}\n", "quick.B"),
    ],
)
def test_a_campaign_that_is_none_is_refused_in_one_line(text, said):
    with pytest.raises(UserError) as caught:
        parse_campaign(text, "c.yaml", "quick")
    assert said in str(caught.value)


def test_a_campaign_is_told_from_a_study_by_its_first_field():
    assert is_campaign("# a comment\n\ncampaign: x\n")
    assert not is_campaign("study: x\n")
    assert not is_campaign("")


BROWSERS = studies.read_text(studies.campaigns()["baccichet2021"])


def test_the_study_of_browsers_has_pages_and_videos_on_every_path():
    campaign = parse_campaign(BROWSERS, "baccichet2021.yaml", "full")
    kinds = {"page": "page", "video": "video", "index": "requests"}
    scenarios = ("bare", "access", "lossy", "nginx")
    assert list(campaign.studies) == [f"{scenario}-{suite}" for scenario in scenarios for suite in kinds]
    for name, study in campaign.studies.items():
        scenario, suite = name.split("-")
        path = "bare" if scenario == "nginx" else scenario
        assert study.workload.kind == kinds[suite]
        assert study.factors["path"] == (path,)
        assert study.factors["server"] == (("nginx",) if scenario == "nginx" else ("origin",))
        assert study.paths[path].impaired is (path != "bare")
        assert study.factors["protocol"] == ("h1", "h2", "h3")
        assert all(getattr(plan.workload_for(study, one), "view", "cold") == "cold" for one in plan.treatments(study))


def test_a_depth_names_the_studies_that_it_runs_and_only_names_others():
    campaign = parse_campaign(BROWSERS, "baccichet2021.yaml", "quick")
    assert list(campaign.studies) == ["bare-page", "bare-video", "bare-index"]
    other = parse_campaign(BROWSERS, "baccichet2021.yaml", "quick", only=["access-page"])
    assert list(other.studies) == ["access-page"]
    text = BROWSERS.replace("studies: [bare-page,", "studies: [bare-pages,")
    with pytest.raises(UserError, match="no such study 'bare-pages'; did you mean 'bare-page'"):
        parse_campaign(text, "baccichet2021.yaml", "quick")


def test_a_suite_of_a_scenario_has_its_own_length_at_a_depth():
    studies_ = read("quick").studies
    assert studies_["distributed_loss-A"].workload.requests == 2
    assert studies_["distributed_loss-B"].workload.requests == 2
    assert studies_["distributed_delay-A"].factors["path"] == ("lag",)
    assert all(study.min_blocks == study.max_blocks == 6 for study in studies_.values())


def test_packets_are_captured_in_one_run_and_timed_in_another():
    text = studies.read_text(studies.campaigns()["ding2022"])
    captured, timed, engine = parse_campaign(text, "ding2022.yaml", "full").studies.values()
    assert captured.capture
    assert not captured.gives_verdicts
    assert timed.gives_verdicts
    assert captured.factors["client"] == (*timed.factors["client"], *engine.factors["client"])
    assert captured.factors["response"] == timed.factors["response"]


def test_in_full_it_loads_both_pages_in_both_browsers_and_watches_as_long_as_the_study():
    campaign = parse_campaign(BROWSERS, "baccichet2021.yaml", "full")
    page, video = campaign.studies["bare-page"], campaign.studies["bare-video"]
    assert page.factors["page"] == ("light", "heavy")
    assert page.factors["client"] == ("chromium", "firefox")
    assert video.factors["mode"] == ("on-demand", "live")
    assert (video.workload.watch_ns, video.workload.segment_ns) == (90_000_000_000, 3_000_000_000)


def test_from_nginx_the_video_is_live_by_rtmp_in_one_rendition_as_in_the_study():
    video = parse_campaign(BROWSERS, "baccichet2021.yaml", "full").studies["nginx-video"]
    assert video.factors["mode"] == ("live-rtmp",)
    assert [height for height, _ in video.workload.ladder] == [720]
    assert (video.workload.watch_ns, video.workload.segment_ns) == (90_000_000_000, 3_000_000_000)


BETWEEN = studies.read_text(studies.campaigns()["milicevic2023"])


def test_the_study_between_services_has_its_requests_and_places():
    campaign = parse_campaign(BETWEEN, "milicevic2023.yaml", "full")
    assert list(campaign.studies) == ["python-latency", "python-throughput", "engine-latency", "engine-throughput"]
    latency, throughput = campaign.studies["python-latency"], campaign.studies["python-throughput"]
    assert latency.min_blocks * latency.workload.requests == 5_000
    assert throughput.workload.requests == 20_000
    assert (latency.factors["connection"], throughput.factors["connection"]) == (("new",), ("reused",))
    assert (latency.factors["path"], throughput.factors["path"]) == (("near", "far"), ("near",))
    for study in campaign.studies.values():
        assert study.factors["request"] == ("100 B", "600 B", "1 kB")
        assert study.workload.in_flight == 1
        assert (study.workload.method, study.workload.response_bytes) == ("POST", 100)
    assert (latency.paths["near"].rtt_ns, latency.paths["far"].rtt_ns) == (2_000_000, 70_000_000)
    assert latency.factors["server"] == ("hypercorn",)


def test_a_first_look_between_services_keeps_both_places_and_all_payloads_on_one_connection():
    campaign = parse_campaign(BETWEEN, "milicevic2023.yaml", "quick")
    assert campaign.studies["python-latency"].factors["path"] == ("near", "far")
    assert len(campaign.studies["python-throughput"].factors["request"]) == 3
    assert all(study.min_blocks == 6 for study in campaign.studies.values())


def test_what_only_and_an_option_ask_for_both_is_refused():
    with pytest.raises(UserError, match=r"^option --set place=native: --only distributed_02-A sets factors.place too"):
        read(only=["distributed_02-A"], overrides=["place=native"])


def test_an_option_that_some_study_has_a_use_for_is_taken_and_any_other_refused():
    found = read(overrides=["paths.lossy.loss=5 %"]).studies
    assert {study.paths["lossy"].loss for study in found.values() if "lossy" in study.paths} == {0.05}
    assert any("lossy" not in study.paths for study in found.values())
    with pytest.raises(UserError, match=r"^option --set paths.losy.loss=5 %: no cell has the path 'losy'; "):
        read(overrides=["paths.losy.loss=5 %"])


PUBLISHED = """\
campaign: c
common:
  factors: {protocol: [HTTP/1.1, HTTP/2, HTTP/3], connection: [new], server: [origin]}
  baseline: HTTP/2
suites:
  get: {workload: {kind: requests, requests: 10}}
  post: {workload: {kind: requests, method: POST, requests: 10}}
scenarios:
  near: {factors: {path: [near]}, paths: {near: {rtt: 2 ms}}}
  far: {factors: {path: [far]}, paths: {far: {rtt: 20 ms}}}
quick: {get: {workload: {requests: 5}}}
full: {}
as_published:
  tolerate: [protocol]
  studies: [near-get, near-post]
  common: {factors: {server: [nginx], tls_version: [1.2/1.3]}}
  get: {workload: {requests: 7}}
  scenarios: {near: {post: {workload: {requests: 8}}}}
  full: {studies: [far-post], post: {workload: {requests: 9}}}
"""


def test_published_conditions_lie_over_the_depth_and_their_own_depth_over_them() -> None:
    today = parse_campaign(PUBLISHED, "c.yaml", "quick")
    assert (today.as_published, today.tolerate, len(today.studies)) == (False, frozenset(), 4)
    assert today.studies["near-get"].workload.requests == 5
    assert today.studies["near-get"].factors["server"] == ("origin",)
    quick = parse_campaign(PUBLISHED, "c.yaml", "quick", as_published=True)
    assert (quick.as_published, quick.tolerate, list(quick.studies)) == (True, {"protocol"}, ["near-get", "near-post"])
    assert [study.workload.requests for study in quick.studies.values()] == [7, 8]
    assert {study.factors["server"] for study in quick.studies.values()} == {("nginx",)}
    full = parse_campaign(PUBLISHED, "c.yaml", "full", as_published=True)
    assert [(name, study.workload.requests) for name, study in full.studies.items()] == [("far-post", 9)]


def test_published_conditions_may_have_a_description_of_their_own() -> None:
    text = PUBLISHED.replace("campaign: c\n", "campaign: c\ndescription: Today's.\n")
    assert parse_campaign(text, "c.yaml", "quick", as_published=True).description == "Today's."
    text = text.replace("as_published:\n", "as_published:\n  description: Then.\n")
    assert parse_campaign(text, "c.yaml", "quick", as_published=True).description == "Then."
    assert parse_campaign(text, "c.yaml", "quick").description == "Today's."


def test_with_a_budget_quick_has_more_and_full_and_published_conditions_do_not() -> None:
    text = PUBLISHED.replace("full: {}", "full: {}\nwith_budget: {get: {workload: {requests: 6}}}")
    for depth, with_budget, requests in (("quick", False, 5), ("quick", True, 6), ("full", True, 10)):
        read = parse_campaign(text, "c.yaml", depth, with_budget=with_budget)
        assert read.studies["near-get"].workload.requests == requests
    published = parse_campaign(text, "c.yaml", "quick", as_published=True, with_budget=True)
    assert published.studies["near-get"].workload.requests == 7
    with pytest.raises(UserError, match="put"):
        parse_campaign(
            text.replace("{get: {workload: {requests: 6}}}", "{put: {}}"), "c.yaml", "quick", with_budget=True
        )


def test_with_a_budget_claims_of_two_cells_have_both() -> None:
    text = studies.read_text(studies.campaigns()["bourbon2020"])
    read = parse_campaign(text, "bourbon2020", "quick", with_budget=True)
    levels = {
        name: {str(one) for study in read.studies.values() for one in study.factors.get(name, ())}
        for name in ("path", "place", "clients", "request")
    }
    for one in studies.published()["bourbon2020"].statements:
        for name, level in ({**one.says.at, **one.says.against} if one.says is not None else {}).items():
            assert name == "hosts" or str(level) in levels[name], one.id
    with_delay = read.studies["distributed_delay-B"]
    assert with_delay.factors["place"] == ("docker-host", "native")
    assert len(read.studies["distributed_loss-A"].factors["request"]) == 2


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("as_published:\n", "today:\n", "today"),
        ("tolerate: [protocol]", "tolerate: protocol", "give a list of checks"),
        ("  studies: [near-get, near-post]", "  studies: [near-put]", "no such study 'near-put'"),
        ("  get: {workload: {requests: 7}}", "  put: {workload: {requests: 7}}", "put"),
    ],
)
def test_published_conditions_that_are_none_are_refused(before: str, after: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_campaign(PUBLISHED.replace(before, after), "c.yaml", "quick", as_published=True)


def test_a_campaign_without_published_conditions_says_so() -> None:
    text = PUBLISHED[: PUBLISHED.index("as_published:")]
    with pytest.raises(UserError, match="has no published conditions; run it as it is today"):
        parse_campaign(text, "c.yaml", "quick", as_published=True)


@pytest.mark.parametrize("as_published", [False, True])
def test_the_load_balancer_stands_between_services_as_published_only(as_published: bool) -> None:
    campaign = parse_campaign(BETWEEN, "milicevic2023.yaml", "quick", as_published=as_published)
    asked = {study.workload.load_balancer for study in campaign.studies.values()}
    assert asked == ({True} if as_published else {None})


def test_clients_are_processes_as_published_and_fifty_of_them_on_two_hosts() -> None:
    assert {study.workload.client_processes for study in read("full").studies.values()} == {None}
    hosts: dict[tuple[str, int], tuple[str, ...]] = {}
    for name, study in read("full", as_published=True, only=["B"]).studies.items():
        for one in plan.treatments(study):
            workload = plan.workload_for(study, one)
            hosts[name, workload.clients] = workload.client_hosts
    assert hosts.pop(("single-B", 4)) == ("host1",) * 4
    assert {clients: found for (_, clients), found in hosts.items()} == {
        4: ("host1",) * 4,
        50: ("host1",) * 20 + ("host3",) * 30,
    }
    assert len(hosts) == 6


@pytest.mark.parametrize("name", studies.campaigns())
@pytest.mark.parametrize("depth", ["quick", "full"])
def test_every_study_can_be_run_as_published(name: str, depth: Depth) -> None:
    text = studies.read_text(studies.campaigns()[name])
    published = parse_campaign(text, name, depth, as_published=True)
    assert published.studies
    statements = studies.published(as_published=True)[name].statements
    for factor in ("server", "page"):  # none of them is about a program or a page that is not run
        levels = {level for study in published.studies.values() for level in study.factors.get(factor, ())}
        for one in statements:
            if factor in one.where:
                assert levels & set(map(str, [one.where[factor]])), one.id


def test_as_published_the_light_page_alone_has_a_third_party():
    text = studies.read_text(studies.campaigns()["baccichet2021"])
    page = parse_campaign(text, "baccichet2021.yaml", "quick", as_published=True).studies["nginx-page"]
    assert page.factors["page"] == ("light-fonts", "heavy")
    light, heavy = (
        next(one for one in studies.published(as_published=True)["baccichet2021"].claims if one.id.endswith(name))
        for name in ("light-h3-slower", "heavy-h3-slower")
    )
    assert (light.where["page"], heavy.where["page"]) == ("light-fonts", "heavy")
    today = studies.published()["baccichet2021"].claims
    assert {one.where.get("page") for one in today} == {"light", "heavy", None}
