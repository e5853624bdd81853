"""The command line as a whole: quick, helpful, one line an error, and exit codes that scripts can use."""

import errno
import os
import subprocess
import sys

import pytest

from trifecta.cli import main
from trifecta.design.errors import CannotError, UserError


def trifecta(*arguments, environment=None, **more):
    return subprocess.run(
        [sys.executable, "-m", "trifecta.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
        **more,
    )


def test_help_shows_every_command_and_imports_nothing_heavy():
    code = (
        "import sys; from trifecta.cli import main; code = main.run(['--help']); "
        "heavy = {'numpy', 'scipy', 'duckdb', 'pyarrow', 'matplotlib', 'rich', 'ruamel', 'cryptography'}; "
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in main.COMMANDS:
        assert f"\n  {name} " in done.stdout
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("name", [*main.COMMANDS, "link measure"])
def test_every_command_has_help_with_an_example(name, capsys):
    assert main.run([*name.split(), "--help"]) == 0
    assert f"trifecta {name}" in capsys.readouterr().out.partition("Example")[2]


def test_version(capsys):
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == "trifecta, version 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rce"], "trifecta: no command 'rce'; did you mean 'race'?; see 'trifecta --help'\n"),
        (["studies", "--jsn"], "trifecta: no such option '--jsn'"),
        (["run"], "trifecta: missing argument 'STUDY'; see 'trifecta run --help'\n"),
        (["run", "nothing"], "trifecta: no study 'nothing'; give the path of a study file, or one of: "),
        (["run", "nothing.yaml"], "trifecta: nothing.yaml: no such file; 'trifecta studies' lists the bundled ones\n"),
        (["race", "--set", "path=cleen"], "trifecta: option --set path=cleen: factors.path[0]: path 'cleen' is not"),
        (["race", "--server", "apache"], "trifecta: option --set server=apache: factors.server[0]: no server 'apache'"),
        (["race", "--budget", "3"], "trifecta: option --set budget=3: budget: '3' has no unit; write a time"),
        (["race", "--blocks", "0"], "trifecta: invalid value for '--blocks'"),
        (["resume", "/nowhere"], "trifecta: invalid value for 'RUN'"),
        (["resume", "/"], "trifecta: / holds no run"),
        (["report", "/"], "trifecta: / holds no run"),
        (["sql", "/", "SELECT 1"], "trifecta: / holds no run"),
        (["completion", "tcsh"], "trifecta: invalid value for"),
        (["link", "measure", "--rtt", "50"], "trifecta: option --rtt: rtt: '50' has no unit"),
        (["link", "measure", "--path", "far"], "trifecta: option --path: needs the study that defines it"),
        (["link", "measure", "--interval", "0"], "trifecta: option --interval: '0' is zero"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main.run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message)
    assert captured.err.count("\n") == 1


@pytest.fixture
def failing(monkeypatch):
    """Lets ``trifecta studies`` raise what a test gives."""

    def fail(error):
        def load(*_):
            raise error

        monkeypatch.setattr("trifecta.studies.bundled", load)

    return fail


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (UserError("study.yaml:3: seed: what; remedy"), 2, "trifecta: study.yaml:3: seed: what; remedy\n"),
        (CannotError("no disk; buy one"), 3, "trifecta: no disk; buy one\n"),
        (CannotError("two\nlines"), 3, "trifecta: two lines\n"),
        (KeyboardInterrupt(), 130, "trifecta: interrupted\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/x/ca.pem"),
            3,
            "trifecta: cannot write /x/ca.pem: the disk is full; free some space, or choose another folder with --out, "
            "then run this again, or `trifecta resume` a run\n",
        ),
        (
            OSError(errno.EROFS, "Read-only"),
            3,
            "trifecta: cannot write a file: the file system is read-only; choose another folder with --out\n",
        ),
        (
            OSError(errno.EBADF, "Bad"),
            70,
            "trifecta: internal error: OSError: [Errno 9] Bad; repeat with TRIFECTA_DEBUG=1 and report it\n",
        ),
        (
            RuntimeError("oops"),
            70,
            "trifecta: internal error: RuntimeError: oops; repeat with TRIFECTA_DEBUG=1 and report it\n",
        ),
    ],
)
def test_errors_end_with_their_exit_code_and_one_line(failing, error, code, line, capsys, monkeypatch):
    monkeypatch.delenv("TRIFECTA_DEBUG", raising=False)
    failing(error)
    assert main.run(["studies"]) == code
    assert capsys.readouterr().err == line


def test_a_traceback_only_when_asked_for(failing, capsys, monkeypatch):
    monkeypatch.setenv("TRIFECTA_DEBUG", "1")
    failing(UserError("bad"))
    assert main.run(["studies"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m trifecta.cli.main studies race | true"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell, capsys):
    assert main.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_TRIFECTA_COMPLETE={shell}_complete" in script
    assert "%(" not in script


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("trifecta ra", {"race"}),
        ("trifecta run ra", {"race"}),
        ("trifecta race --set pa", {"pace=", "pacing=", "packet_threshold=", "page=", "path=", "paths="}),
        ("trifecta link ", {"measure"}),
        ("trifecta completion z", {"zsh"}),
        ("trifecta race --server hapr", {"haproxy"}),
        ("trifecta race --server origin,cad", {"origin,caddy", "origin,caddy-2022"}),
        ("trifecta race --server haproxy,hapr", {""}),  # it is there already
        ("trifecta run race --client lo", {"load"}),
        ("trifecta race --server an", {"any"}),
        ("trifecta get quic", {"quic-go", "quiche"}),
    ],
)
def test_completion_knows_commands_studies_and_keys(words, expected):
    done = trifecta(
        environment={
            "_TRIFECTA_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        }
    )
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == expected, done.stderr
