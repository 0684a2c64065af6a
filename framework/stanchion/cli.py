"""The command line: look at the chain of a server, and serve it.

Imported only by the console script `stanchion`; typer and rich cost more to import than the
engine does. Answers go to stdout, complaints to stderr. The exit code is 0, 1 if the server as
written would not start, or 2 if the command line names what is not there.
"""

from __future__ import annotations

import errno
import inspect
import itertools
import platform
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final

import anyio
import typer
from rich.console import Console
from rich.table import Table

from . import __version__
from .chain import AnyLayer, Middleware, layer_name
from .commands import UNSERVABLE, WRONG_COMMAND, Commands, complain
from .edge import TARGET_KINDS
from .features import features_of
from .loading import DEFAULT_ATTRIBUTE, load_server
from .mount import passed
from .plugins import load_transport
from .protocol import TARGET_PARAMS, VERSIONS, Era
from .server import Server
from .target import Target
from .tool import Tool

PIPE_WIDTH: Final = 400
"""Columns where stdout is no terminal: no line is broken that a program may search."""

main = typer.Typer(
    name="stanchion",
    cls=Commands,
    help="MCP servers behind a checked chain.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

App = Annotated[
    str,
    typer.Argument(
        metavar="APP",
        help="Where the server is: module:attribute or path/to/file.py:attribute. "
        f"The attribute is {DEFAULT_ATTRIBUTE!r} if it is left out.",
        show_default=False,
    ),
]


@main.command()
def chain(
    app: App,
    tool: Annotated[
        str | None, typer.Argument(metavar="TOOL", help="Only this tool, layer by layer.")
    ] = None,
) -> None:
    """Print the chain of one tool, or of every tool and method, outermost layer first.

    The server is started for it and stopped again, so that what would not start is said here.
    """
    server = load_server(app)
    if not anyio.run(_print_chain, server, tool):
        tools = ", ".join(each.name for each in server.tools) or "none"
        raise complain(f"{app} has no tool {tool!r}; its tools: {tools}", WRONG_COMMAND)


@main.command()
def run(
    app: App,
    transport: Annotated[
        str, typer.Option(help="http, stdio, or the name of another installed transport.")
    ] = "stdio",
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = None,
) -> None:
    """Serve until the transport ends or a signal stops it."""
    given = {key: value for key, value in (("host", host), ("port", port)) if value is not None}
    server = load_server(app)
    serve = load_transport(transport)
    try:
        inspect.signature(serve).bind(server, **given)
    except TypeError as error:
        raise complain(f"transport {transport!r}: {error}", WRONG_COMMAND) from None

    try:
        serve(server, **given)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
            raise

        raise complain(f"cannot listen: {error.strerror}", UNSERVABLE) from None


@main.command()
def version() -> None:
    """Print which Stanchion this is and which protocol versions it speaks."""
    spoken = f"MCP {VERSIONS[0]} to {VERSIONS[-1]}"
    typer.echo(f"stanchion {__version__}, {spoken}, Python {platform.python_version()}")


# From a server to what is printed.


async def _print_chain(server: Server, name: str | None) -> bool:
    """Start *server* and print; gives False if it has no tool called *name*."""
    async with server:
        if name is None:
            _print_all(server)
            return True

        entry = server.tools.get(name)
        if entry is not None:
            width = None if sys.stdout.isatty() else PIPE_WIDTH
            Console(highlight=False, markup=False, width=width).print(_table(server, entry.target))

        return entry is not None


def _print_all(server: Server) -> None:
    """Print a block of whole lines for each target and each other method that is served."""
    offered = (server.tools, server.resources, server.templates, server.prompts)
    for target in itertools.chain(*offered):
        method = target.kind.method
        typer.echo(f"{method} {target.key}\n  {_line(server, method, target)}")
        policies: dict[str, Any] = {}
        for _, seen in passed(server.chain, method, target):
            policies |= {} if seen is None else seen.policies

        if policies:
            typer.echo(f"  policies: {_policies(policies)}")

    served = (
        feature
        for feature in features_of(server)
        if feature.capability is None or feature.is_declared(Era.LEGACY)
    )
    for method in (method for feature in served for method in feature.methods):
        # The kernel answers a ping itself, and targets have had their lines.
        if method != "ping":
            noun = TARGET_KINDS[method] if method in TARGET_PARAMS else None
            unknown = "" if noun is None else f" (a name that matches no {noun})"
            typer.echo(f"{method}{unknown}\n  {_line(server, method, None)}")


def _line(server: Server, method: str, target: Target | None) -> str:
    layers = [layer_name(layer) for layer, _ in passed(server.chain, method, target)]
    return " → ".join([*layers, "handler"])


def _table(server: Server, tool: Tool) -> Table:
    table = Table("", "layer", "policies", "is", box=None, title=tool.name, title_justify="left")
    layers = passed(server.chain, "tools/call", tool)
    for place, (layer, seen) in enumerate(layers, start=1):
        enforced = "" if seen is None else _enforced(layer, seen)
        table.add_row(str(place), layer_name(layer), enforced, _origin(layer))

    table.add_row("", "handler", "", _origin(tool.handler))
    return table


def _enforced(layer: AnyLayer, tool: Target) -> str:
    """Say what *tool* asks of *layer*, and what else it could ask."""
    if not isinstance(layer, Middleware):
        return ""

    asked = {name: value for name, value in tool.policies.items() if name in layer.policies}
    unset = [f"{name} unset" for name in layer.policies if name not in asked]
    return ", ".join([_policies(asked), *unset] if asked else unset)


def _policies(policies: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in policies.items())


def _origin(thing: object) -> str:
    named = thing if inspect.isroutine(thing) else type(thing)
    return f"{named.__module__}.{named.__qualname__}"
