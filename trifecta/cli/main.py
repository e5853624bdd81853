"""The command ``trifecta``: finds the subcommand, and turns every error into one line and an exit code.

Subcommands are imported when they are called, so that ``trifecta --help`` and shell completion are quick.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from trifecta.design.errors import TrifectaError

INTERRUPTED = 130  # 128 + SIGINT, as a shell says it
COMPLETE_VARIABLE = "_TRIFECTA_COMPLETE"
INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
NEW_OBJECTS = 20_000  # that are not yet looked through for cycles

# name -> the line in the overview; the command is `command` in the module of that name
COMMANDS: dict[str, str] = {
    "race": "Run the bundled study 'race': which version of HTTP is fastest, and where?",
    "run": "Run a study file or a bundled study.",
    "reproduce": "Repeat published studies, and report which of their claims hold here.",
    "gate": "Decide, in CI, whether a candidate is slower than a baseline.",
    "ladder": "Go from a claim's published conditions to today's, one change at a time.",
    "resume": "Resume an interrupted run, or extend a finished one.",
    "report": "Write a run's report and show its verdicts.",
    "ui": "Show runs in a browser: all of them, one live or finished, two side by side.",
    "explain": "Explain why a run's verdicts are what they are.",
    "compare": "Put the verdicts of two runs side by side.",
    "why": "Find the causes of a difference by removing them one by one, in new trials.",
    "reconcile": "Report where each of two contradicting published claims holds.",
    "studies": "List the bundled studies, or show one.",
    "threats": "List threats to validity, and measure the effect of each on this machine.",
    "implementations": "List servers, clients and browsers: found or not, version, origin, how to get them.",
    "get": "Install servers and clients into Trifecta's own cache.",
    "conformance": "Transfer the same objects with every server and client, and compare every octet.",
    "page": "Record, generate and inspect web pages.",
    "doctor": "Check what this machine can do, what is missing, and how to fix it.",
    "sql": "Query a run's tables with SQL.",
    "stat": "Request one URL over every protocol and show the phases side by side.",
    "export": "Write a run's tables in another format.",
    "notebook": "Write a notebook that opens, queries and draws a run.",
    "map": "Find which protocol wins where, over round-trip time and loss or any two factors.",
    "link": "Measure what the emulated path delivers.",
    "trace": "Analyse captures: packets, frames and requests, and what they cannot show.",
    "completion": "Print a shell's completion script.",
}

EPILOG = """\
Exit codes: 0 done; 1 no trustworthy result, or a gate that fails; 2 bad input; 3 not possible on this machine; 4 a gate
that is undecided; 70 internal error; 130 interrupted.

\b
Examples:
  trifecta doctor
  trifecta race
  trifecta run my-study.yaml --set path=clean --budget "10 min"
"""


class LazyGroup(click.Group):
    """A group whose subcommands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of a session at work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"trifecta.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"trifecta.cli.{cmd_name}.command is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command asked for, or what it could have been."""
        from trifecta.design.document import did_you_mean

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", prog_name="trifecta", package_name="trifecta")
def cli() -> None:
    """Is HTTP/3 faster than HTTP/2 and HTTP/1.1 for this traffic, on this path, with these programs, and why?"""


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command line; the exit code. Errors a user can mend are one line on standard error."""
    try:
        completing = os.environ.get(COMPLETE_VARIABLE)
        if completing:
            from click.shell_completion import shell_complete

            return shell_complete(cli, {}, "trifecta", COMPLETE_VARIABLE, completing)
        # Not cli.main(): it has its own mind about interrupts, closed pipes and exit codes.
        with cli.make_context("trifecta", list(sys.argv[1:] if arguments is None else arguments)) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        return _end(error)


def _end(error: BaseException) -> int:
    """The exit code of an error, after its one line."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if isinstance(error, click.ClickException):
        message, code = _usage(error), 2
    elif isinstance(error, TrifectaError):
        message, code = str(error), error.exit_code
    elif isinstance(error, OSError) and (refusal := _full(error)) is not None:
        message, code = str(refusal), refusal.exit_code
    elif isinstance(error, KeyboardInterrupt | click.Abort):
        message, code = "interrupted", INTERRUPTED
    else:
        what = f"{type(error).__name__}: {error}"
        message, code = f"internal error: {what}; repeat with TRIFECTA_DEBUG=1 and report it", INTERNAL_ERROR
    _complain(message)
    return code


def _full(error: OSError) -> TrifectaError | None:
    """A full disk where nobody looked for one is no fault of ours."""
    from trifecta.store import files

    return files.full(error)


def _usage(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "trifecta"
    return f"{message[:1].lower()}{message[1:]}; see '{path} --help'"


def _complain(message: str) -> None:
    if os.environ.get("TRIFECTA_DEBUG") == "1":
        traceback.print_exc()
    sys.stdout.flush()
    print(f"trifecta: {' '.join(message.split())}", file=sys.stderr)


def main() -> None:
    """The entry point of the command ``trifecta``."""
    # Modules and tables are many objects that live to the end: to look through them for cycles after every 700 new ones
    # was 7 % of a report's time.
    gc.set_threshold(NEW_OBJECTS)
    sys.exit(run())


if __name__ == "__main__":
    main()
