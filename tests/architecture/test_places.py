"""Programs of the lab are started at a place (`trifecta.lab.place`): nobody above `lab` makes a process there."""

import ast
from pathlib import Path

import pytest

import trifecta

PACKAGE = Path(trifecta.__file__).parent
MAKERS = {"EngineProcess", "ContainerProcess", "Popen", "popen"}
"""What makes a process that somebody then talks with or watches."""
APART = {
    "api/measuring.py": "measures in a process beside a notebook, which enters the lab itself",
    "implementations/clients/driver.py": "is started at a place itself, and starts the client beside it",
    "implementations/clients/quic_probe.py": "tells before a run what a client can",
    "report/figures/parallel.py": "draws figures of a run that is over",
    "recording/proxy.py": "records a page, outside of any lab",
    "ui/jobs.py": "starts the starter, outside of any lab",
    "ui/starter.py": "starts the command itself, as a shell does",
    "workloads/cluster/uploader.py": "reaches an object store, outside of the lab that its node enters",
    "trace/tshark.py": "dissects what was captured",
}


def makes_processes(source: str) -> list[int]:
    """The lines that make a process, or bring in what makes one."""

    def name_of(node: ast.AST) -> set[str]:
        match node:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                return {name}
            case ast.ImportFrom(names=names):
                return {alias.name for alias in names}
        return set()

    return [node.lineno for node in ast.walk(ast.parse(source)) if name_of(node) & MAKERS]


@pytest.mark.parametrize(
    "line",
    [
        "EngineProcess(engine, 'load', host, log)",
        "from trifecta.lab.engine import EngineProcess as Process",
        "engine.EngineProcess(path, 'link', host, log)",
        "containers.ContainerProcess(docker, 'origin', log)",
        "subprocess.Popen(['caddy'])",
        "lab.host('server').popen(['caddy'])",
    ],
)
def test_a_process_is_found(line):
    assert makes_processes(line)


@pytest.mark.parametrize("line", ["place.start('load', log)", "process: subprocess.Popen[bytes]", "adapter.find()"])
def test_other_lines_are_left_alone(line):
    assert not makes_processes(line)


def test_nobody_above_the_lab_makes_a_process_in_it():
    modules = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
    above = {name: path for name, path in modules.items() if not name.startswith("lab/")}
    assert len(above) > 300
    made = {name: lines for name, path in above.items() if (lines := makes_processes(path.read_text("utf-8")))}
    assert made.keys() == APART.keys(), "start it at a place, or say why it is apart"
