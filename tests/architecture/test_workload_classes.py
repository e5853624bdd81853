"""A workload is asked what it is like; nobody asks which class it is. What differs by kind is a line in a table."""

import ast
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import trifecta
from trifecta.design.workloads.requests import Family
from trifecta.workloads.executor import Executor
from trifecta.workloads.executors import EXECUTORS, HOSTS

PACKAGE = Path(trifecta.__file__).parent
ASKS_A_CLASS = ("isinstance", "issubclass")


def class_questions(source: str) -> list[int]:
    """The lines that ask whether something is of a workload's class, in any of the ways Python has."""
    tree = ast.parse(source)
    classes = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.endswith("Workload")
    }

    def named(node: ast.AST) -> bool:
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        attributes = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
        return bool(names & classes) or any(name.endswith("Workload") for name in names | attributes)

    def takes_the_class(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1
        return isinstance(node, ast.Attribute) and node.attr == "__class__"

    def asks(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[_, asked]) if name in ASKS_A_CLASS:
                return named(asked)
            case ast.Compare():
                sides = [node.left, *node.comparators]
                return any(map(takes_the_class, sides)) and any(map(named, sides))
            case ast.MatchClass(cls=asked):
                return named(asked)
        return False

    return [node.lineno if hasattr(node, "lineno") else 0 for node in ast.walk(tree) if asks(node)]


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(one, VideoWorkload)",
        "not isinstance(study.workload, model.BrowserWorkload)",
        "isinstance(one, (Page, PageWorkload))",
        "isinstance(one, PageWorkload | VideoWorkload)",
        "issubclass(kind, ServicesWorkload)",
        "type(one) is RequestsWorkload",
        "type(one) in (PageWorkload, VideoWorkload)",
        "one.__class__ == VideoWorkload",
        "from trifecta.design.model import VideoWorkload as Video\nisinstance(one, Video)",
        "match one:\n    case VideoWorkload():\n        pass",
    ],
)
def test_a_question_for_the_class_is_found(question):
    assert class_questions(question)


@pytest.mark.parametrize("harmless", ["VideoWorkload(clip='bbb')", "isinstance(one, Trial)", "type(one) is Trial"])
def test_other_lines_are_left_alone(harmless):
    assert not class_questions(harmless)


def test_no_workload_is_asked_for_its_class():
    modules = sorted(PACKAGE.rglob("*.py"))
    assert len(modules) > 300
    asked = {
        f"{path.relative_to(PACKAGE)}:{line}" for path in modules for line in class_questions(path.read_text("utf-8"))
    }
    assert not asked, "say it in the class of the workload (trifecta/design/workloads), or in a table by its kind"


def kind_questions(source: str) -> list[int]:
    """The lines that compare a workload's own ``kind`` with a name."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Attribute) and side.attr == "kind" and ast.unparse(side.value) == "self"
    ]


def test_a_question_for_the_own_kind_is_found():
    assert kind_questions("class Workload:\n    def calls(self):\n        return 2 if self.kind == 'chain' else 1") == [
        3
    ]


def test_no_workload_asks_itself_which_one_it_is():
    modules = sorted((PACKAGE / "design" / "workloads").glob("*.py"))
    assert len(modules) > 4
    asked = {f"{path.name}:{line}" for path in modules for line in kind_questions(path.read_text("utf-8"))}
    assert not asked, "a class of its own says what is otherwise"


def test_every_family_names_a_module_that_has_its_executor():
    """The names are texts, so that only one is imported: no checker of types sees whether there is such a module."""
    assert set(EXECUTORS) == set(get_args(Family))
    for module in (*EXECUTORS.values(), *HOSTS.values()):
        assert isinstance(import_module(f"trifecta.workloads.{module}").EXECUTOR, Executor)
