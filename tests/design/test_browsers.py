"""Studies of browsers: what they may say, and what each cell of them does."""

import pytest

from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.levels import Surroundings
from trifecta.design.model import PageWorkload, VideoWorkload
from trifecta.design.resolve import least_trial_ns
from trifecta.design.study_file import parse_study

PAGE = "study: p\nworkload: {kind: page, visits: 3}\nfactors: {view: [cold, repeat]}\npaths: {far: {rtt: 20 ms}}\n"
VIDEO = "study: v\nworkload: {kind: video, watch: 20 s, mode: live}\n"


def read(text, overrides=(), **around):
    return parse_study(text, "s.yaml", overrides, Surroundings(**around))


def test_a_page_is_loaded_by_a_browser_that_is_named_in_every_cell():
    study = read(PAGE)
    keys = [cell.key for cell in plan.cells(study)]
    assert keys == [
        f"path=far,connection=browser,server=origin,client=chromium,view={view}" for view in ("cold", "repeat")
    ]
    workload = plan.workload_for(study, plan.treatments_of(study, plan.cells(study)[1])[0])
    assert isinstance(workload, PageWorkload)
    assert (workload.view, workload.visits, workload.impaired) == ("repeat", 3, "client-router")


def test_the_canonical_text_reads_back():
    for text in (PAGE, VIDEO):
        study = read(text)
        assert read(study.source).source == study.source
        assert read(study.source) == study


def test_a_ladder_has_its_rungs_in_order():
    study = read(VIDEO, ["workload.ladder=240p 400 kbit/s + 480p 1.2 Mbit/s"])
    assert isinstance(study.workload, VideoWorkload)
    assert study.workload.ladder == ((240, 400_000), (480, 1_200_000))
    assert "240p 400 kbit/s + 480p 1.2 Mbit/s" in study.source


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        (PAGE, ["factors.connection=new"], "browser"),
        (PAGE, ["factors.client=load"], "no client 'load'"),
        (PAGE, ["factors.depth=3"], "not a factor of the workload 'page'"),
        (PAGE, ["workload.requests=3"], "requests"),
        (PAGE, ["workload.visits=0"], "1 to 1000"),
        (PAGE, ["workload.impaired=host1-host2"], "client-router"),
        (PAGE, ["workload.place=docker-bridge"], "give native or docker-host"),
        (PAGE, ["workload.discovery=alt-svc", "factors.protocol=h1,h2"], "HTTP/3"),
        (PAGE, ["paths.far.trial.requests=3"], "trial"),
        (VIDEO, ["workload.ladder=480p 1 Mbit/s + 240p 400 kbit/s"], "does not rise"),
        (VIDEO, ["workload.ladder=481p 1 Mbit/s"], "height"),
        (VIDEO, ["workload.ladder=loud"], "480p 1.2 Mbit/s"),
        (VIDEO, ["workload.segment=100 ms"], "1 s to 20 s"),
        (VIDEO, ["workload.watch=4 s"], "two segments"),
        (VIDEO, ["budget=30 s"], "cannot hold"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(text, overrides, words):
    with pytest.raises(UserError, match=words) as raised:
        read(text, overrides, browsers=["chromium", "firefox"])
    assert "\n" not in str(raised.value)


def test_the_server_of_a_page_can_run_in_a_container():
    study = read(PAGE, ["factors.place=native,docker-host"])
    assert plan.places(study) == {"native", "docker-host"}
    assert {plan.workload_for(study, one).needs for one in plan.treatments(study)} == {
        (("place", "native"),), (("place", "docker-host"),)
    }  # fmt: skip
    assert plan.places(read(VIDEO)) == set()


def test_any_client_of_a_page_is_any_browser():
    found = {"browser": ["chromium", "firefox"], "client": ["load", "curl"]}.__getitem__
    assert read(PAGE, ["factors.client=any"], found=found).factors["client"] == ("chromium", "firefox")


def test_a_page_by_its_path_is_a_level_however_long():
    path = "/somewhere/" + "x" * 200
    study = read(PAGE, ["factors.page=light,mine"], find_page=lambda name: path if name == "mine" else name)
    assert study.factors["page"] == ("light", path)


def test_a_watch_takes_its_time():
    study = read(VIDEO)
    assert least_trial_ns(study, plan.treatments(study)[0]) == 20_000_000_000
