"""Commands that other distributions add to the command line, found by entry point."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from .errors import ConfigurationError
from .plugins import COMMAND_GROUP, installed

UNSERVABLE: Final = 1
WRONG_COMMAND: Final = 2


class Commands(TyperGroup):
    """The engine's own commands, and those that are installed; the engine's own go first.

    A command of the entry-point group `stanchion.commands` is a `typer.Typer`. It is imported
    when it is called or listed, and one that cannot be is said so and left out.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Give the names of all commands, our own first."""
        own = super().list_commands(ctx)
        return [*own, *sorted(set(installed(COMMAND_GROUP)) - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Give the command of that name, or None."""
        own = super().get_command(ctx, cmd_name)
        point = None if own is not None else installed(COMMAND_GROUP).get(cmd_name)
        if point is None:
            return own

        try:
            command = get_command(point.load())
        except Exception as error:  # noqa: BLE001 # the import of somebody else's module
            words = f"command {cmd_name!r} cannot be loaded: {type(error).__name__}: {error}"
            typer.echo(f"stanchion: {words}", err=True)
            return None

        command.name = cmd_name
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what is wrong with the server as written is said without a traceback."""
        try:
            return super().invoke(ctx)
        except ConfigurationError as error:
            raise complain(str(error), error.exit_code) from None


def complain(words: str, code: int) -> typer.Exit:
    """Say on stderr what is wrong; gives what ends the process with *code*."""
    typer.echo(f"stanchion: {words}", err=True)
    return typer.Exit(code)
