"""``trifecta studies``."""

import json

from trifecta import studies
from trifecta.cli import main


def test_lists_the_bundled_studies(capsys):
    assert main.run(["studies"]) == 0
    text = capsys.readouterr().out
    assert "race: " in text
    assert "12 cells x 4 arms, budget 3 min" in text


def test_one_cell_is_one(capsys):
    main.run(["studies"])
    said = capsys.readouterr().out
    assert "\n  1 cell x 4 arms, budget 4 min\n  trifecta run page\n" in said
    assert "\n  12 cells x 4 arms, budget 3 min\n  trifecta run race\n" in said


def test_json_says_what_a_study_compares(capsys):
    assert main.run(["studies", "--json"]) == 0
    race = next(each for each in json.loads(capsys.readouterr().out) if each["name"] == "race")
    assert race["name"] == "race"
    assert race["arms"] == ["h1", "h2", "h3", "h2#aa"]
    assert len(race["cells"]) == 12
    assert race["budget"] == "3 min"


def test_a_study_is_checked_and_printed_as_it_stands(capsys):
    assert main.run(["studies", "race"]) == 0
    assert capsys.readouterr().out == studies.bundled()["race"].read_text()


def test_the_text_printed_is_a_study_that_runs_from_another_folder(capsys, tmp_path):
    main.run(["studies", "race"])
    (tmp_path / "mine.yaml").write_text(capsys.readouterr().out)
    assert main.run(["studies", str(tmp_path / "mine.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == studies.load("race").source


def test_a_broken_file_is_named_with_its_line(capsys, tmp_path):
    file = tmp_path / "broken.yaml"
    file.write_text("study: x\nworkload: {requests: 5}\nsped: 3\n")
    assert main.run(["studies", str(file)]) == 2
    assert capsys.readouterr().err == f"trifecta: {file}:3: sped: unknown field; did you mean 'seed'?\n"


def test_unreadable_files(capsys, tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"study: \xe9\n")
    assert main.run(["studies", str(tmp_path / "latin.yaml")]) == 2
    assert "is not UTF-8 text (octet 7)" in capsys.readouterr().err
    assert main.run(["studies", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_what_to_expect_goes_to_standard_error(capsys, tmp_path):
    assert main.run(["studies", "race"]) == 0
    assert "12 cells x 4 arms x 6 blocks: 288 trials, " in capsys.readouterr().err
    file = tmp_path / "post.yaml"
    file.write_text(studies.bundled()["race"].read_text().replace("method: GET", "method: POST"))
    assert main.run(["studies", str(file)]) == 0
    said = capsys.readouterr()
    assert said.out == file.read_text()
    assert "left out: server caddy: Caddy's file server does not answer POST; use GET or HEAD" in said.err
    assert main.run(["studies", str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["preflight"]["trials"], document["cannot_run"]) == (144, None)
    assert [item["level"] for item in document["preflight"]["left_out"]] == ["caddy"]


def test_a_study_that_cannot_run_here_says_why(capsys, tmp_path):
    file = tmp_path / "post.yaml"
    text = studies.bundled()["race"].read_text().replace("method: GET", "method: POST")
    file.write_text(text.replace("server: [origin, caddy]", "server: [caddy]"))
    assert main.run(["studies", str(file)]) == 0
    assert "cannot run here: no server of the study can be used here: Caddy" in capsys.readouterr().err
