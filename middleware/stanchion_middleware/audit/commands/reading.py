"""What `query` and `export` read: a trail's entries that are wanted, after a look at the trail."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator

from ..entry import Key
from ..reader import Opened, TrailReader
from ..selection import Selection
from ..subject_keys import SubjectKeys
from ..verify import verify_trail
from .display import say
from .source import Sources
from .verify import first_fault, is_sound
from .wrong_use import wrong_use


def _warn_unless_sound(sources: Sources, keys: Iterable[Key]) -> None:
    """Say on stderr what is wrong with a trail that is read all the same."""
    found = verify_trail(sources, keys=keys)
    if not is_sound(found):
        fault = first_fault(found) or "there is no entry"
        say(f"warning: this trail does not verify: {fault}", err=True)


@contextlib.contextmanager
def wanted(
    sources: Sources,
    select: Selection,
    keys: SubjectKeys | None,
    chain_keys: Iterable[Key] | None,
) -> Generator[Iterator[Opened]]:
    """Give the entries that are wanted, and say in the end what was left out for it is none.

    Args:
        sources: The trail.
        select: What is wanted of it.
        keys: What opens the parts that are sealed, or None.
        chain_keys: The keys of hashes that it is verified with first; None does not look.

    Raises:
        BadParameter: The trail or the keys cannot be read.
    """
    if chain_keys is not None:
        _warn_unless_sound(sources, chain_keys)

    reader = TrailReader(sources, keys)
    with contextlib.ExitStack() as opened, wrong_use():
        if keys is not None:
            opened.enter_context(keys)

        yield (each for each in reader if select.takes(each.entry))

    if reader.skipped:
        say(f"warning: {reader.skipped} lines that are no entries are left out", err=True)
