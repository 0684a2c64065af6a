"""The command line: look at the chain of a server, and serve it.

Imported only by the console script `stanchion`; typer and rich cost more to import than the
engine does. Answers go to stdout, complaints to stderr. The exit code is 0, 1 if the server as
written would not start, or 2 if the command line names what is not there.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import inspect
import itertools
import os
import platform
import sys
import traceback
from collections.abc import Generator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Final

import anyio
import typer
from rich.console import Console
from rich.table import Table

from . import __version__
from .chain import AnyLayer, Middleware, layer_name
from .edge import TARGET_KINDS
from .errors import ConfigurationError
from .features import features_of
from .mount import passed
from .plugins import load_transport
from .protocol import TARGET_PARAMS, VERSIONS, Era
from .server import Server
from .target import Target
from .tool import Tool

DEFAULT_ATTRIBUTE: Final = "server"
UNSERVABLE: Final = 1
WRONG_COMMAND: Final = 2
PIPE_WIDTH: Final = 400
"""Columns where stdout is no terminal: no line is broken that a program may search."""

main = typer.Typer(
    name="stanchion",
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
    with _reporting():
        server = _load(app)
        if not anyio.run(_print_chain, server, tool):
            tools = ", ".join(each.name for each in server.tools) or "none"
            raise _complain(f"{app} has no tool {tool!r}; its tools: {tools}", WRONG_COMMAND)


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
    with _reporting():
        server = _load(app)
        serve = load_transport(transport)
        try:
            inspect.signature(serve).bind(server, **given)
        except TypeError as error:
            raise _complain(f"transport {transport!r}: {error}", WRONG_COMMAND) from None

        try:
            serve(server, **given)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                raise

            raise _complain(f"cannot listen: {error.strerror}", UNSERVABLE) from None


@main.command()
def version() -> None:
    """Print which Stanchion this is and which protocol versions it speaks."""
    spoken = f"MCP {VERSIONS[0]} to {VERSIONS[-1]}"
    typer.echo(f"stanchion {__version__}, {spoken}, Python {platform.python_version()}")


# From the command line to a server.


def _load(app: str) -> Server:
    """Import what *app* names; what it prints meanwhile goes to stderr.

    A server on stdio owns stdout from the first byte on, and a module that greets its user when
    it is imported would break the stream.
    """
    place, colon, attribute = app.rpartition(":")
    if not colon or app.endswith(".py"):  # a path may have a colon of its own
        place, attribute = app, DEFAULT_ATTRIBUTE

    with contextlib.redirect_stdout(sys.stderr):
        try:
            module = _import(place)
        except (Exception, SystemExit) as error:
            if isinstance(error, ConfigurationError):
                raise

            words = f"{place} cannot be imported: {_in_one_line(error)}"
            raise _complain(words, WRONG_COMMAND) from None

    found = getattr(module, attribute, None)
    if isinstance(found, Server):
        return found

    servers = [name for name, value in vars(module).items() if isinstance(value, Server)]
    offer = f"; its servers: {', '.join(servers)}" if servers else ""
    what = "has no" if found is None else f"has a {type(found).__name__}, not a Server, as"
    raise _complain(f"{place} {what} {attribute!r}{offer}", WRONG_COMMAND)


def _import(place: str) -> ModuleType:
    """Import a module by name or path, from where `python` would find what it imports itself."""
    if not place.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(place)

    path = Path(place).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {place}")

    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    if module.__file__ != str(path):
        raise ImportError(f"{path.stem!r} is the name of another module; rename the file")

    return module


def _in_one_line(error: BaseException) -> str:
    words = " ".join(str(error).split())
    where = traceback.extract_tb(error.__traceback__)[-1]
    ours = where.filename == __file__ or where.filename.startswith("<frozen")
    place = "" if ours else f" ({where.filename}:{where.lineno})"
    return f"{type(error).__name__}: {words}{place}"


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


# What goes wrong.


@contextlib.contextmanager
def _reporting() -> Generator[None]:
    """Say what is wrong with the server as written, without a traceback."""
    try:
        yield
    except ConfigurationError as error:
        raise _complain(str(error), UNSERVABLE) from None


def _complain(words: str, code: int) -> typer.Exit:
    typer.echo(f"stanchion: {words}", err=True)
    return typer.Exit(code)
