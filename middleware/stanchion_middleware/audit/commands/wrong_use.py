"""What is wrong with a command line, said in one way."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator

import typer

from stanchion import ConfigurationError


@contextlib.contextmanager
def wrong_use() -> Generator[None]:
    """Say that what the command line names is not there, or not what it should be.

    Raises:
        BadParameter: That it is so, which ends the process with 2.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # whoever reads the output has gone
    except (ConfigurationError, OSError, sqlite3.Error) as error:
        raise typer.BadParameter(str(error)) from None
