"""Options and arguments that several commands share."""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import click
from click.shell_completion import CompletionItem

Decorated = Callable[..., Any]

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Show no progress, only the result.")


def folder(help_text: str) -> Callable[[Decorated], Decorated]:
    """The option ``--out`` of a command that writes a folder, with its help."""
    return click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help=help_text)


def ip_version(default: str = "IPv4") -> Callable[[Decorated], Decorated]:
    """The option ``--ip``; ``default`` in words, as the help says it."""
    sentence = f"The version of the Internet Protocol to use.  [default: {default}]"
    return click.option("--ip", type=click.Choice(["IPv4", "IPv6"], case_sensitive=False), help=sentence)


def complete_run(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Run directories below ``runs/``, and any folder."""
    runs = sorted(str(path.parent) for path in Path("runs").glob("*/run.json"))
    items = [CompletionItem(path) for path in runs if path.startswith(incomplete)]
    return items or [CompletionItem(incomplete, type="dir")]


run_directory = click.argument(
    "run", type=click.Path(path_type=Path, exists=True, file_okay=False), shell_complete=complete_run
)


def complete_study(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Bundled studies, and files."""
    from trifecta import studies

    known = (*studies.bundled(), *studies.campaigns())
    names = [CompletionItem(name) for name in known if name.startswith(incomplete)]
    return names or [CompletionItem(incomplete, type="file")]


def complete_override(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The bare keys of ``--set``."""
    from trifecta.design.factors import KNOWN_FACTORS, LENGTH_FIELDS, WORKLOAD_FIELDS
    from trifecta.design.resolve import STUDY_FIELDS

    keys = dict.fromkeys((*KNOWN_FACTORS, *WORKLOAD_FIELDS, *LENGTH_FIELDS, *STUDY_FIELDS))
    return [CompletionItem(f"{key}=") for key in keys if key.startswith(incomplete)]


def complete_compared(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The factors, and behind ``server=`` and ``client=`` their names."""
    from trifecta.design.factors import KNOWN_FACTORS

    factor, equals, levels = incomplete.partition("=")
    if not equals:
        from trifecta.threats import THREATS

        threats = [CompletionItem(name) for name in THREATS if name.startswith(factor)]
        return [CompletionItem(f"{name}=") for name in KNOWN_FACTORS if name.startswith(factor)] + threats
    if factor not in ("server", "client"):
        return []
    known = _complete_names("server" if factor == "server" else "client", levels)
    return [CompletionItem(f"{factor}={item.value}") for item in known]


def complete_server(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The servers that have an adapter, and ``any``."""
    return _complete_names("server", incomplete)


def complete_client(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The clients that have an adapter, and ``any``."""
    return _complete_names("client", incomplete)


def complete_recipe(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What can be got."""
    from trifecta.implementations.registry import RECIPES

    return [CompletionItem(name) for name in RECIPES if name.startswith(incomplete)]


def complete_threat(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The threats that can be switched or measured."""
    from trifecta.threats import THREATS

    return [CompletionItem(name) for name in THREATS if name.startswith(incomplete)]


def _complete_names(kind: Literal["server", "client"], incomplete: str) -> list[CompletionItem]:
    """The last of several names with commas; nothing is looked for, since that takes longer than a user waits."""
    from trifecta.design.any_level import ANY
    from trifecta.implementations.survey import names_of_kind

    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    names = [name for name in (*names_of_kind(kind), ANY) if name.startswith(last) and name not in taken]
    return [CompletionItem(f"{before}{comma}{name}") for name in names]


def split_names(values: tuple[str, ...]) -> list[str]:
    """The names of an option that can be given again, or once with commas."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def narrowing(command: Decorated) -> Decorated:
    """The options that narrow a study or change a field of it."""
    for option in reversed(
        (
            click.option(
                "--set",
                "overrides",
                metavar="KEY=VALUE",
                multiple=True,
                shell_complete=complete_override,
                help="Change a factor or a field: path=clean, response='1 kB', paths.rough.loss='5 %'. Repeatable.",
            ),
            click.option(
                "--compare",
                metavar="FACTOR[=LEVEL,...]",
                shell_complete=complete_compared,
                help="Compare the levels of this factor in every block: server=origin,caddy, "
                "congestion_control=cubic,bbr, ...; or a threat, off against on.  [default: protocol]",
            ),
            click.option(
                "--baseline",
                metavar="LEVEL",
                help="Compare the other levels with this one, which runs twice in every block.  [default: HTTP/2, or "
                "the first level]",
            ),
            click.option("--blocks", type=click.IntRange(1), help="Run exactly this many blocks in every cell."),
            click.option(
                "--budget", metavar="TIME", help="Stop after this time, for example '10 min'; 'none': no limit."
            ),
            click.option(
                "--seed",
                metavar="N",
                help="Seed of trial order, losses and arrivals; give a run's seed to repeat it.  [default: random, "
                "recorded in the run]",
            ),
            click.option(
                "--server",
                "servers",
                multiple=True,
                metavar="NAME,...",
                shell_complete=complete_server,
                help="Use only these servers. 'any': all that are found. One of your own: nginx@./build, caddy@2.10.0, "
                "NAME=./server.yaml, compose:./compose.yaml#web, 'cmd:./my-server --port {port} --cert {cert} "
                "--key {key}'. Repeatable.",
            ),
            click.option(
                "--client",
                "clients",
                multiple=True,
                metavar="NAME,...",
                shell_complete=complete_client,
                help="Use these clients in place of the engine's 'load'. 'any': all that are found. Repeatable.",
            ),
            click.option(
                "--host",
                "hosts",
                multiple=True,
                metavar="ROLE=PLACE",
                help="Run the client or the server on another machine: client=ssh://USER@HOST:PORT, server=here. Place "
                "both; for a chain of services, place the client and each service by its name: B=ssh://HOST. The "
                "path is then the real network between them, and client and servers are the engine's own. "
                "Repeatable.",
            ),
            click.option(
                "--with",
                "threats_on",
                metavar="ID,...",
                multiple=True,
                shell_complete=complete_threat,
                help="Switch on this threat to validity (something that can make a conclusion wrong; `trifecta "
                "threats` lists them). Repeatable.",
            ),
            click.option(
                "--without",
                "threats_off",
                metavar="ID,...",
                multiple=True,
                shell_complete=complete_threat,
                help="Switch off this threat to validity. Repeatable.",
            ),
            click.option(
                "--capture", is_flag=True, help="Capture the packets of every trial; captured trials give no verdicts."
            ),
        )
    ):
        command = option(command)
    return command


def running(command: Decorated) -> Decorated:
    """The options of commands that measure."""
    for option in reversed(
        (
            folder("Folder of the run, new or empty.  [default: runs/STUDY-DATE-TIME]"),
            quiet,
            as_json,
        )
    ):
        command = option(command)
    return command


def cluster(command: Decorated) -> Decorated:
    """The options ``--cluster`` and ``--store``, which a command gets as one: a `clusters.OnCluster`, or None."""
    from trifecta.cli import clusters

    @functools.wraps(command)
    def merged(*arguments: Any, cluster: str | None, store: str | None, **others: Any) -> Any:
        return command(*arguments, cluster=clusters.cluster_options(cluster, store), **others)

    address = click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Run blocks on the nodes of a Ray cluster, one lab per node: HOST:PORT of its head, auto, or local:N (N "
        "nodes on this machine, to try it out).",
    )
    place = click.option(
        "--store",
        metavar="URL",
        help="With --cluster: nodes upload the files of their trials to this object store, and the run downloads them "
        "at its end: s3://BUCKET/PREFIX, gs://, az://, file:///FOLDER.",
    )
    return cast(Decorated, address(place(merged)))


leaving = click.option(
    "--yes",
    is_flag=True,
    help="For servers outside the lab: send the requests without asking for consent; required where there is no "
    "terminal.",
)


def with_seed(changes: list[str], text: str, file: str) -> list[str]:
    """The overrides with a seed drawn fresh, unless they or the study file name one.

    Runs with one seed have the same losses: they agree with each other more than the path would let them.
    """
    from trifecta.design.yaml_text import parse_document

    named = any(change.partition("=")[0].strip() == "seed" for change in changes)
    if named or "seed" in parse_document(text, file).tree:
        return changes
    return [*changes, f"seed={secrets.randbelow(2**31)}"]


def _compared_factor(compare: str | None) -> tuple[str, str]:
    """The factor that ``--compare`` names, or a threat is, and its levels; both empty without the option."""
    from trifecta.design.document import nearest
    from trifecta.design.errors import UserError
    from trifecta.design.factors import KNOWN_FACTORS
    from trifecta.threats import THREATS, compared_factor

    factor, equals, levels = (part.strip() for part in (compare or "").partition("="))
    if compare is not None and (not factor or bool(equals) != bool(levels)):
        raise UserError(f"option --compare: {compare!r} is not FACTOR=LEVEL,LEVEL, nor a factor alone; name both")
    if factor not in (*KNOWN_FACTORS, *THREATS) and (near := nearest(factor, THREATS)):
        raise UserError(f"option --compare: {factor!r} is neither a factor nor a threat; did you mean {near!r}?")
    return (not levels and compared_factor(factor)) or (factor, levels)


def as_overrides(
    overrides: tuple[str, ...],
    blocks: int | None,
    budget: str | None,
    seed: str | None,
    servers: tuple[str, ...],
    *,
    clients: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    capture: bool = False,
    compare: str | None = None,
    baseline: str | None = None,
) -> list[str]:
    """All narrowing options as ``KEY=VALUE`` of ``--set``; an exact number of blocks needs no budget.

    UserError where two of them ask for the same.
    """
    from trifecta.cli.option_parsing import own_servers
    from trifecta.design.errors import UserError
    from trifecta.design.hosts import parse_host_option
    from trifecta.design.overrides import name_of, refuse_twice

    named, own = own_servers(servers)
    narrowed = {"server": named} if servers and not (own and named == [*own]) else {}  # those are levels by themselves
    narrowed |= {"client": split_names(clients)} if clients else {}
    factor, levels = _compared_factor(compare)
    given = {"compare": compare, "baseline": baseline, "blocks": blocks, "budget": budget, "seed": seed}
    by_option = {name: f"--{name} {value}" for name, value in given.items() if value is not None}
    by_option |= {"capture": "--capture"} if capture else {}
    placed = [parse_host_option(text) for text in hosts]
    for role, place in placed:
        if (other := next((one for known, one in placed if known == role), place)) != place:
            raise UserError(f"options --host {role}={other} and --host {role}={place}: both set it; leave one out")
    by_option |= {"hosts": f"--host {hosts[0]}"} if hosts else {}
    by_option |= {name: f"--{name} {','.join(names)}" for name, names in narrowed.items()}
    if levels:
        if factor in by_option:
            raise UserError(f"options --compare {compare} and {by_option[factor]}: both set {factor}; leave one out")
        by_option[factor] = f"--compare {compare}"
    refuse_twice(overrides, by_option)
    set_fields = [f"servers.{name}={json.dumps(written, ensure_ascii=False)}" for name, written in own.items()]
    set_fields += overrides
    set_fields += [f"compare={factor}"] if factor else []
    set_fields += [f"{factor}={levels}"] if levels else []
    set_fields += [f"baseline={baseline}"] if baseline is not None else []
    if blocks is not None:
        set_fields.append(f"blocks={{at_least: {blocks}, at_most: {blocks}}}")
        if not any(name_of(change.partition("=")[0].strip()) == ("budget",) for change in overrides):
            set_fields.append("budget=none")
    if budget is not None:
        set_fields.append(f"budget={budget}")
    if seed is not None:
        set_fields.append(f"seed={seed}")
    if capture:
        set_fields.append("capture=true")
    set_fields += [f"hosts.{role}={place}" for role, place in placed]
    set_fields += [f"{name}={','.join(names)}" for name, names in narrowed.items()]
    return set_fields
