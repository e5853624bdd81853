"""The factor ``client``: in the cells of a study only when it is named, so that older runs keep their cells."""

from __future__ import annotations

import pytest

from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.resolve import Surroundings
from trifecta.design.study_file import parse_study
from trifecta.studies import load

TEXT = """\
study: s
workload: {requests: 10}
factors: {response: [1 kB, 2 kB], CLIENT server: [origin]}
"""


def read(client: str, *overrides: str, known: tuple[str, ...] | None = ("load", "curl")) -> list[str]:
    text = TEXT.replace("CLIENT", client)
    return [cell.key for cell in plan.cells(parse_study(text, "s.yaml", overrides, Surroundings(clients=known)))]


def test_a_study_that_names_no_client_keeps_the_keys_it_had() -> None:
    assert read("") == [
        "path=clean,connection=reused,server=origin,response=1 kB",
        "path=clean,connection=reused,server=origin,response=2 kB",
    ]
    race = load("race")
    assert plan.cells(race)[0].key == "path=clean,connection=new,server=origin"
    assert "client" not in race.factors
    assert "client" not in race.source
    assert {one.client for one in plan.treatments(race)} == {"load"}


def test_a_named_client_is_in_every_cell_after_the_server() -> None:
    keys = read("client: [load, curl],")
    assert keys[0] == "path=clean,connection=reused,server=origin,client=load,response=1 kB"
    assert len(keys) == 4
    assert read("", "client=load,curl") == keys
    assert read("client: [curl],", "client=load") == [key for key in keys if "client=load" in key]


def test_the_canonical_text_reads_back_to_the_same_cells() -> None:
    study = parse_study(TEXT.replace("CLIENT", "client: [curl, load],"), "s.yaml", ())
    again = parse_study(study.source, "again.yaml", ())
    assert again == study
    assert [plan.treatments_of(again, cell)[0].client for cell in plan.cells(again)] == ["curl", "curl", "load", "load"]


def test_an_unknown_client_is_refused_with_its_place() -> None:
    with pytest.raises(UserError, match=r"s\.yaml:3: .*no client 'culr'; did you mean 'curl'"):
        read("client: [culr],")
    assert len(read("client: [anything],", known=None)) == 2


@pytest.mark.parametrize("client", ["client: [],", "client: [curl, curl],", 'client: ["a=b"],'])
def test_bad_levels_are_refused(client: str) -> None:
    with pytest.raises(UserError):
        read(client, known=None)
