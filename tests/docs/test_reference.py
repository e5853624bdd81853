"""The reference pages name everything there is, and links lead somewhere."""

import itertools
import re
import tomllib

import click
import pytest

from tests.docs.examples import PAGES, ROOT
from trifecta.cli.gate import EXIT_CODES
from trifecta.cli.main import COMMANDS, INTERNAL_ERROR, INTERRUPTED, cli
from trifecta.design.factors import CORE_FACTORS, LENGTH_FIELDS
from trifecta.design.fields import REQUESTS_FIELDS, SERVICES_FIELDS
from trifecta.design.metrics import TRIALS
from trifecta.design.paths import PATH_FIELDS
from trifecta.design.resolve import STUDY_FIELDS

STUDY_FILES = (ROOT / "docs/study-files.md").read_text()
SERVICES = (ROOT / "docs/services.md").read_text()
GUIDE = (ROOT / "docs/guide.md").read_text()
DEPENDENCIES = (ROOT / "docs/dependencies.md").read_text()


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            *STUDY_FIELDS,
            *(f.name for f in REQUESTS_FIELDS),
            *LENGTH_FIELDS,
            *PATH_FIELDS,
            *CORE_FACTORS,
            *(one.asked for one in TRIALS if one.asked),
        }
    ),
)
def test_study_files_names_every_field(name):
    assert f"`{name}`" in STUDY_FILES


@pytest.mark.parametrize("name", [field.name for field in SERVICES_FIELDS])
def test_services_names_every_field_of_theirs(name):
    assert f"\n| `{name}` |" in SERVICES


def test_the_guide_names_every_command_and_exit_code():
    for command in COMMANDS:
        assert re.search(rf"\btrifecta {command}\b|`{command}`", GUIDE), command
    for code in (0, 1, 2, 3, EXIT_CODES["undecided"], INTERNAL_ERROR, INTERRUPTED):
        assert f"\n| {code} |" in GUIDE


def test_all_commands_have_json_but_those_that_the_guide_names():
    def leaves(command, name):
        if isinstance(command, click.Group) and command.commands:
            if any(option.name == "as_json" for option in command.params):
                yield name, True
            for below, each in command.commands.items():
                yield from leaves(each, f"{name} {below}")
        else:
            yield name, any(option.name == "as_json" for option in command.params)

    have = dict(each for name in COMMANDS for each in leaves(cli.get_command(click.Context(cli), name), name))
    without = sorted(name for name, has in have.items() if not has)
    assert without == ["completion", "page make"]
    assert "Every command but `completion` and `page make` has `--json`" in GUIDE


def test_the_readme_has_at_most_100_lines():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 100
    assert text.index("docs/images/report.png") < text.index("make race") < text.index("## Why trust it")


def test_every_page_is_reached_from_the_readme():
    named = set(re.findall(r"\]\((docs/[^)#\s]+\.md)", (ROOT / "README.md").read_text()))
    assert {str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")} == named


def wanted() -> list[str]:
    """What the package and all its extras need, besides itself with other extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    every = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    return [text for text in every if not text.startswith("trifecta[")]


def test_every_dependency_has_its_reason():
    crates = tomllib.loads((ROOT / "engine/Cargo.toml").read_text())["workspace"]["dependencies"]
    names = [re.split(r"[<>=~! \[]", text)[0] for text in wanted()]
    names += [name for name in crates if not name.startswith("trifecta-")]
    for name in names:
        assert f"`{name}`" in DEPENDENCIES, name


def test_every_package_wanted_is_pinned():
    lock = (ROOT / "requirements.lock").read_text().lower().replace("_", "-")
    for text in wanted():
        name = re.split(r"[<>=~! \[]", text)[0].lower()
        assert re.search(rf"^{re.escape(name)}==", lock, re.MULTILINE), name


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"
