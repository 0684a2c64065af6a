"""Published readings: what servers and layers measure of themselves, as observable instruments."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from stanchion import ConfigurationError, Reading, Server, readings_of

METER: Final = "stanchion"


class Published:
    """The observable instruments of one meter provider, for all servers that use it.

    A provider takes each instrument once, with its first callback, and leaves out the callbacks
    of those that are made again under the same name. So all servers share one.

    Attributes:
        is_stale: Whether there are readings, or may be, that have no instrument yet.
    """

    def __init__(self, meter: Meter) -> None:
        """Publish with *meter*."""
        self.is_stale = True
        self._meter = meter
        self._names: set[str] = set()
        self._servers: tuple[Server, ...] = ()  # replaced, as another thread may read it
        self._changing = threading.Lock()

    def add(self, server: Server) -> None:
        """Publish what *server* measures, until it is removed."""
        with self._changing:
            self._servers = (*self._servers, server)
            self.is_stale = True

    def remove(self, server: Server) -> None:
        """Publish nothing of *server* any more."""
        with self._changing:
            self._servers = tuple(each for each in self._servers if each is not server)

    def refresh(self) -> None:
        """Make the instruments that are missing.

        Not while metrics are collected: the SDK holds a lock then which this needs.
        """
        with self._changing:
            self.is_stale = False
            for reading in self._readings():
                if reading.name not in self._names:
                    self._names.add(reading.name)
                    self._make(reading)

    def _make(self, reading: Reading) -> None:
        make = self._meter.create_observable_gauge
        if reading.rises:
            make = self._meter.create_observable_counter

        make(
            reading.name,
            callbacks=[partial(self._observe, reading.name)],
            unit=reading.unit,
            description=reading.description,
        )

    def _observe(self, name: str, options: CallbackOptions) -> Iterable[Observation]:
        found: list[Observation] = []
        for reading in self._readings():
            if reading.name == name:
                found.append(Observation(reading.value, dict(reading.attributes)))
            elif reading.name not in self._names:
                self.is_stale = True

        return found

    def _readings(self) -> list[Reading]:
        readings: list[Reading] = []
        for server in self._servers:
            try:
                readings += readings_of(server)
            except ConfigurationError:  # it opens or closes just now
                self.is_stale = True

        return readings


_PUBLISHED: Final[WeakKeyDictionary[MeterProvider, Published]] = WeakKeyDictionary()
_MAKING = threading.Lock()


def published_by(provider: MeterProvider) -> Published:
    """Give what *provider* publishes, made when it is first asked for."""
    with _MAKING:
        published = _PUBLISHED.get(provider)
        if published is None:
            published = _PUBLISHED[provider] = Published(provider.get_meter(METER))

        return published
