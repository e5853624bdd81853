"""A reproduction beside the same as published: its page, terminal and data, and what is read from the folder below."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.report import pages
from tests.report.synthetic import Shape, write_run
from trifecta import studies
from trifecta.conclude.reproduction.as_published import below
from trifecta.conclude.reproduction.compared import compare
from trifecta.conclude.reproduction.result import Result, as_data, read
from trifecta.contract.invocation import CampaignInvocation, ReproductionInvocation
from trifecta.contract.reproduction import StatementDocument
from trifecta.design.campaign import parse_campaign
from trifecta.design.errors import UserError
from trifecta.report.reproduction import print_result, write
from trifecta.report.reproduction.output import render
from trifecta.store import campaign as campaigns
from trifecta.store import reproduction, results_manifest

STUDY = "milicevic2023"


def reproduced(folder: Path, *, as_published: bool) -> Result:
    """The far path of one study, as today or as published."""
    text = studies.read_text(studies.campaigns()[STUDY])
    asked: CampaignInvocation = {
        "text": text, "file": STUDY, "depth": "quick", "overrides": [], "only": [], "as_published": as_published,
    }  # fmt: skip
    about: ReproductionInvocation = {
        "studies": [STUDY], "depth": "quick", "began": "2026-01-01T00:00:00Z", "elapsed_s": {}, "threats": False,
        "as_published": as_published, "campaigns": {STUDY: asked}, "all": False, "argv": ["trifecta", "reproduce"],
    }  # fmt: skip
    campaign = parse_campaign(text, STUDY, "quick", as_published=as_published)
    reproduction.create(folder, about)
    campaigns.create(folder / STUDY, campaign, asked)
    year = "-2023" if as_published else ""
    server, client = f"hypercorn{year}", f"python-client{year}"
    shape = Shape(blocks=6, samples_per_trial=60, paths=("far",), connections=("new",), servers=(server,),
                  clients=(client,), http3_wait={server: 3.0})  # fmt: skip
    shape.troubles = False
    write_run(folder / STUDY / "python-latency", shape)
    return read(folder, {STUDY: campaign}, {})


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Today's, with the same as published in its folder."""
    folder = tmp_path_factory.mktemp("both") / "all"
    reproduced(folder, as_published=False)
    nested = folder / reproduction.AS_PUBLISHED_FOLDER
    write(reproduced(nested, as_published=True))
    campaign = parse_campaign(studies.read_text(studies.campaigns()[STUDY]), STUDY, "quick")
    return read(folder, {STUDY: campaign}, {})


def decided(result: Result, state: str) -> str:
    """The id of a claim in a state."""
    return next(one.statement.id for one in result.evaluations() if one.state == state)


def told(state: str, **ends: float) -> StatementDocument:
    """What a claim was as published."""
    return {"state": state, "form": "ratio", "value": ends.get("value"), "low": ends.get("low"),
            "high": ends.get("high"), "blocks": 6, "reason": "too few", "by": "as-published"}  # fmt: skip


def test_what_was_found_as_published_is_taken_from_the_folder_below(both: Result) -> None:
    nested = json.loads((both.folder / "as-published" / "reproduction.json").read_text())
    rows = {row["id"]: row for row in (*nested["claims"], *nested["figures"])}
    assert set(both.then) == set(rows)
    judged = [one for one in both.evaluations() if one.blocks and not one.difference]
    assert judged
    for one in judged:
        then = both.then[one.statement.id]
        row = rows[one.statement.id]
        assert (then["state"], then["value"], then["low"]) == (row["state"], row["ratio"], row["low"])
        assert then["by"] == "as-published"
    assert nested["reproduction"]["as_published"] is True


def test_page_terminal_and_data_say_the_answer_of_both(both: Result) -> None:
    claim = decided(both, "contradicted")
    held = replace(both, then={claim: told("confirmed", value=0.53, low=0.52, high=0.54)})
    row = next(one for one in as_data(held)["claims"] + as_data(held)["figures"] if one["id"] == claim)  # type: ignore[operator,index,union-attr]
    assert (row["state"], row["answer"]) == ("contradicted", "held then")  # type: ignore[index,call-overload]
    assert row["as_published"]["value"] == 0.53  # type: ignore[index,call-overload]
    page = pages.read(render(held)).root
    shown = next(line for line in page.all("tr") if line.attributes.get("id") == claim)
    assert "held-then" in str(shown.attributes["class"])
    assert "As published, here: 0.53 [0.52, 0.54], confirmed." in shown.text
    assert "It holds under the published conditions; today no longer." in shown.text
    out = Console(file=io.StringIO(), width=200)
    print_result(held, out)
    printed = " ".join(out.file.getvalue().split())  # type: ignore[attr-defined]
    assert "held then" in printed


def test_what_was_not_tried_as_published_is_not_contradicted(both: Result) -> None:
    alone = replace(both, then={})
    out = Console(file=io.StringIO(), width=200)
    print_result(alone, out)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    assert "not today" in printed and "contradicted" not in printed
    assert "--as-published --out" in printed
    page = pages.read(render(alone)).root
    assert not [line for line in page.all("tr") if "contradicted" in str(line.attributes.get("class", ""))]
    assert "not tried as published" in page.text.lower()
    tried = replace(both, then={decided(both, "contradicted"): told("open")})
    assert "as published it is open: too few" in render(tried).lower()


def test_what_stayed_open_as_published_is_not_to_be_tried_again(both: Result) -> None:
    claims = [one.statement.id for one in both.evaluations() if one.state == "contradicted"]
    out = Console(file=io.StringIO(), width=200)
    print_result(replace(both, then={claim: told("open") for claim in claims}), out)
    printed = out.file.getvalue()  # type: ignore[attr-defined]
    assert "not today" in printed and "as published it is open" in " ".join(printed.split())
    assert "is not known" not in printed


def test_what_was_not_run_as_published_names_its_ladder(both: Result) -> None:
    """Here only requests over new connections on the far path were run."""
    told = {one.statement.id: both.then[one.statement.id]["reason"] for one in both.evaluations()}
    nothing = "nothing was run that it is about; python-throughput was not run"
    named = f"{nothing}; a ladder makes these conditions (`trifecta ladder milicevic2023-twenty`)"
    assert told["milicevic2023.reused-more"] == named
    assert [one for one, reason in told.items() if "ladder" in reason] == ["milicevic2023.reused-more"]
    assert nothing in told.values()


def test_as_published_says_so_on_its_page_and_is_contradicted_by_itself(both: Result) -> None:
    campaign = parse_campaign(studies.read_text(studies.campaigns()[STUDY]), STUDY, "quick", as_published=True)
    result = read(both.folder / "as-published", {STUDY: campaign}, {})
    text = pages.read(render(result)).root.text
    assert "Published, and measured as published" in text
    told = "the load balancer is a host that translates addresses, CPUs are those of this machine, not AWS's"
    assert told in text.replace("\n", " ")
    assert {result.answer(one)[0] for one in result.evaluations()} >= {"contradicted"}


def test_a_ladder_stands_in_for_what_was_not_tried(both: Result) -> None:
    claim = decided(both, "contradicted")
    ladder = {"ladder": "up", "claim": claim, "reason": "r", "then": {
        "state": "confirmed", "ratio": 0.5, "low": 0.4, "high": 0.6, "blocks": 6}}  # fmt: skip
    empty = both.folder.parent / "empty"
    found = below(empty, [ladder])  # type: ignore[list-item]
    assert found[claim]["by"] == "ladder up"
    # Beside what was measured as published it only decides what is open there.
    assert below(both.folder, [ladder])[claim]["by"] == "as-published"  # type: ignore[list-item]


def test_a_reproduction_of_today_in_that_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    write(reproduced(folder / "as-published", as_published=False))
    with pytest.raises(UserError, match="was not made as published"):
        below(folder, [])
    data = folder / "as-published" / "reproduction.json"
    data.write_text(data.read_text().replace('"as_published": false', '"as_published": true'))
    with pytest.raises(UserError, match=r"reproduction\.json"):  # stored files that were changed are named
        below(folder, [])
    results_manifest.note(data.parent, [data.name])
    assert below(folder, []) == {}  # what it holds is about today's programs


def test_two_kinds_of_conditions_are_not_compared(both: Result) -> None:
    write(both)
    with pytest.raises(UserError, match="was made as published"):
        compare(both.folder, both.folder / "as-published")
    assert compare(both.folder / "as-published", both.folder / "as-published").agree
