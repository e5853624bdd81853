"""The reference pages name everything there is, and links lead somewhere."""

import re
import tomllib

import pytest

from tests.docs.examples import PAGES, ROOT
from trifecta.cli.main import COMMANDS, INTERNAL_ERROR, INTERRUPTED
from trifecta.design.factors import CORE_FACTORS, LENGTH_FIELDS
from trifecta.design.fields import REQUESTS_FIELDS, SERVICES_FIELDS
from trifecta.design.paths import PATH_FIELDS
from trifecta.design.resolve import METRICS, STUDY_FIELDS

STUDY_FILES = (ROOT / "docs/study-files.md").read_text()
SERVICES = (ROOT / "docs/services.md").read_text()
GUIDE = (ROOT / "docs/guide.md").read_text()
DEPENDENCIES = (ROOT / "docs/dependencies.md").read_text()


@pytest.mark.parametrize(
    "name",
    sorted({*STUDY_FIELDS, *(f.name for f in REQUESTS_FIELDS), *LENGTH_FIELDS, *PATH_FIELDS, *CORE_FACTORS, *METRICS}),
)
def test_study_files_names_every_field(name):
    assert f"`{name}`" in STUDY_FILES


@pytest.mark.parametrize("name", [field.name for field in SERVICES_FIELDS])
def test_services_names_every_field_of_theirs(name):
    assert f"\n| `{name}` |" in SERVICES


def test_the_guide_names_every_command_and_exit_code():
    for command in COMMANDS:
        assert re.search(rf"\btrifecta {command}\b|`{command}`", GUIDE), command
    for code in (0, 1, 2, 3, INTERNAL_ERROR, INTERRUPTED):
        assert f"\n| {code} |" in GUIDE


def test_every_dependency_has_its_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    crates = tomllib.loads((ROOT / "engine/Cargo.toml").read_text())["workspace"]["dependencies"]
    names = [re.split(r"[<>=~! \[]", text)[0] for text in wanted]
    names += [name for name in crates if not name.startswith("trifecta-")]
    for name in names:
        assert f"`{name}`" in DEPENDENCIES, name


def test_every_package_wanted_is_pinned():
    lock = (ROOT / "requirements.lock").read_text().lower().replace("_", "-")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"] + project["optional-dependencies"]["dev"]:
        name = re.split(r"[<>=~! \[]", text)[0].lower()
        assert re.search(rf"^{re.escape(name)}==", lock, re.MULTILINE), name


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"
