"""From what a command line names to a server."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Final

from .errors import AppNotFound, ConfigurationError
from .server import Server

DEFAULT_ATTRIBUTE: Final = "server"


def load_server(app: str) -> Server:
    """Import the server that *app* names; what its module prints meanwhile goes to stderr.

    A server on stdio owns stdout from the first byte on, and a module that greets its user when
    it is imported would break the stream.

    Args:
        app: `module:attribute` or `path/to/file.py:attribute`; the attribute is `server` if it
            is left out.

    Raises:
        AppNotFound: It cannot be imported, or has no such server.
        ConfigurationError: The module raised one.
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

            raise AppNotFound(f"{place} cannot be imported: {_in_one_line(error)}") from None

    found = getattr(module, attribute, None)
    if isinstance(found, Server):
        return found

    servers = [name for name, value in vars(module).items() if isinstance(value, Server)]
    offer = f"; its servers: {', '.join(servers)}" if servers else ""
    what = "has no" if found is None else f"has a {type(found).__name__}, not a Server, as"
    raise AppNotFound(f"{place} {what} {attribute!r}{offer}")


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
