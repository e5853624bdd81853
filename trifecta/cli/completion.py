"""``trifecta completion``."""

from __future__ import annotations

import click

from trifecta.design.errors import CannotError


@click.command(
    epilog="""\
\b
Examples:
  trifecta completion bash >> ~/.bashrc
  trifecta completion zsh >> ~/.zshrc
  trifecta completion fish > ~/.config/fish/completions/trifecta.fish
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes commands, options, studies and runs in SHELL."""
    from click.shell_completion import get_completion_class

    from trifecta.cli.main import COMPLETE_VARIABLE, cli

    kind = get_completion_class(shell)
    if kind is None:
        raise CannotError(f"click has no completion for {shell}; update it: run: pip install -U click")
    # ShellComplete.source_template is filled directly: source() of bash would look for bash on this machine.
    complete = kind(cli, {}, "trifecta", COMPLETE_VARIABLE)
    click.echo(complete.source_template % complete.source_vars())
