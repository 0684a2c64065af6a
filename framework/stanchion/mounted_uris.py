"""The URIs of a mounted server: what of it can be read through the server that it is mounted in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .content import AnyBlock, Block, EmbeddedResource, ResourceLink, Text
from .contents import Contents, ResourceResult
from .prompt_result import PromptResult
from .results import Result, ToolResult
from .uri_prefix import inner_uri, outer_uri

if TYPE_CHECKING:
    from .server import Server

Outward: TypeAlias = Callable[[str], str]
"""Gives a URI of the inner server as the outer one has it, and any other as it is."""


class MountedUris:
    """How URIs pass one mount.

    A URI is changed on its way out only where the outer server offers it from this mount, so that
    whoever is given one can read it. Text, structured results and what is streamed are not looked
    through for URIs.

    Attributes:
        prefix: What the outer URIs have in front.
    """

    def __init__(self, outer: Server, prefix: str) -> None:
        self.prefix = prefix
        self._outer = outer

    def inner(self, uri: str) -> str | None:
        """Give what *uri* is in the inner server, or None where it is not under the prefix."""
        return inner_uri(self.prefix, uri)

    def offered(self, uri: str) -> str | None:
        """Give the outer URI of the inner *uri*, or None where this mount offers no such."""
        outer = outer_uri(self.prefix, uri)
        entry = self._outer.resources.get(outer)
        if entry is None:
            found = self._outer.templates.find(outer)
            entry = None if found is None else found[0]

        mounted = None if entry is None else entry.target.mounted
        return outer if mounted is not None and mounted.mount.uris is self else None

    def updated(self, uri: str) -> None:
        """Hear that what the inner server has under *uri* has changed."""
        outer = self.offered(uri)
        if outer is not None:
            self._outer.changes.updated(outer)

    def outward(self, result: Result) -> Result:
        """Give *result* with outer URIs in its links and its embedded resources."""
        if isinstance(result, ToolResult):
            blocks = _blocks_outward(result.content, self._outward)
            if blocks is not result.content:
                result = copy(result)
                result.content = blocks
        elif isinstance(result, PromptResult):
            said = [message.content for message in result.messages]
            blocks = _blocks_outward(said, self._outward)
            if blocks is not said:
                messages = list(map(copy, result.messages))
                for message, block in zip(messages, blocks, strict=True):
                    message.content = block

                result = copy(result)
                result.messages = messages

        return result

    def read_outward(self, result: ResourceResult, asked: str) -> ResourceResult:
        """Give *result*, which was read under the inner URI *asked*, with outer URIs.

        What lies below *asked* can be no other server's, whether or not it is offered by itself.
        """

        def outward(uri: str) -> str:
            below = uri.startswith(asked) and (
                asked.endswith("/") or uri[len(asked) : len(asked) + 1] in ("", "/", "?", "#")
            )
            return outer_uri(self.prefix, uri) if below else self._outward(uri)

        changed = copy(result)
        changed.contents = [_contents_outward(part, outward) for part in result.contents]
        return changed

    def _outward(self, uri: str) -> str:
        return self.offered(uri) or uri


def _contents_outward(part: Contents, outward: Outward) -> Contents:
    changed = copy(part)
    changed.uri = None if part.uri is None else outward(part.uri)
    return changed


def _blocks_outward(blocks: Sequence[AnyBlock], outward: Outward) -> Sequence[AnyBlock]:
    """Give *blocks* with their URIs changed, or the very same where none is."""
    for block in blocks:
        if type(block) is not Text:
            break
    else:  # as nearly always
        return blocks

    changed = [_block_outward(block, outward) for block in blocks]
    same = all(new is old for new, old in zip(changed, blocks, strict=True))
    return blocks if same else changed


def _block_outward(block: AnyBlock, outward: Outward) -> AnyBlock:
    """Give *block* or a copy of it: a handler may give the same block to every caller."""
    if isinstance(block, Block):
        if not isinstance(block, ResourceLink | EmbeddedResource):
            return block

        uri = outward(block.uri)
        if uri != block.uri:
            block = copy(block)
            block.uri = uri

        return block

    official = cast("Any", block)  # a pydantic model, whose classes are not imported here
    if official.type == "resource":
        uri = outward(official.resource.uri)
        resource = official.resource.model_copy(update={"uri": uri})
        return (
            block
            if uri == official.resource.uri
            else official.model_copy(update={"resource": resource})
        )

    if official.type == "resource_link":
        uri = outward(official.uri)
        return block if uri == official.uri else official.model_copy(update={"uri": uri})

    return block
