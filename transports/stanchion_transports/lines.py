"""Bytes to lines: how frames are cut out of a stream. Sans-IO."""

from __future__ import annotations

from stanchion import InvalidRequest


class Lines:
    """Cuts a stream of bytes into lines, however the bytes arrive.

    A line ends with a line feed and with nothing else: neither U+2028 nor a lone carriage return
    ends it. CRLF is tolerated, blank lines are left out. A line that is too long is
    skipped without being kept, and an error stands in its place.

    Source: MCP 2025-11-25, basic/transports, "stdio".
    """

    def __init__(self, max_length: int) -> None:
        """Cut lines of at most *max_length* bytes, 1 or more, their end not counted.

        Raises:
            ValueError: *max_length* is less than 1.
        """
        if max_length < 1:
            raise ValueError("max_length must be 1 or more")

        self._max_length = max_length
        self._line = bytearray()  # no list: pieces of a byte would take fifty times their length
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes | InvalidRequest]:
        """Take the next bytes and give the lines that they complete."""
        *ended, begun = chunk.split(b"\n")
        lines: list[bytes | InvalidRequest] = []
        for piece in ended:
            self._keep(piece)
            lines.extend(self._take())

        self._keep(begun)
        return lines

    def finish(self) -> list[bytes | InvalidRequest]:
        """Give the last line, if the stream ended without a newline behind it."""
        return self._take()

    def _keep(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length > self._max_length + 1:  # it may end in a carriage return
            self._line.clear()
        else:
            self._line += piece

    def _take(self) -> list[bytes | InvalidRequest]:
        line, length = bytes(self._line).removesuffix(b"\r"), self._length
        self._line.clear()
        self._length = 0
        if len(line) > self._max_length or length > self._max_length + 1:
            return [InvalidRequest(f"A message must not be longer than {self._max_length} bytes")]

        return [line] if line.strip() else []
