"""Resources and templates, driven by the official client in every way."""

from __future__ import annotations

import base64

import pytest
from mcp import MCPError
from mcp_types import ResourceTemplateReference

pytestmark = pytest.mark.xdist_group("end_to_end")

LINE = "orders://{number}/lines/{line}"


async def every_page(ask, member):
    """Give what all pages of a list hold."""
    found, cursor = [], None
    while True:
        page = await ask(cursor=cursor)
        found += getattr(page, member)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def read(client, uri):
    """Give the only contents of a resource."""
    (contents,) = (await client.read_resource(uri)).contents
    return contents


async def test_it_lists_resources_and_templates(client):
    """With their types, sizes and annotations; a folder's files and its template among them."""
    resources = {each.uri: each for each in await every_page(client.list_resources, "resources")}
    assert resources["memo://logo"].mime_type == "image/png"
    assert resources["memo://logo"].annotations.priority == 1.0
    assert resources["memo://today"].description == "What is to be done."
    assert resources["memo://start"].size == resources["docs://guide/start.md"].size > 0
    templates = await every_page(client.list_resource_templates, "resource_templates")
    uris = [template.uri_template for template in templates]
    assert uris == sorted(uris)
    assert {LINE, "tree://root/{+path}", "docs://{+path}"} <= set(uris)


async def test_it_reads_text_and_bytes(client):
    """Text anew each time, and bytes as they are."""
    first, second = [await read(client, "memo://today") for _ in range(2)]
    assert first.mime_type == "text/plain"
    assert first.text != second.text
    logo = await read(client, "memo://logo")
    assert base64.b64decode(logo.blob) == b"\x89PNG\x00\xff"


async def test_it_is_told_how_long_it_may_keep_a_resource(way, client):
    """In the modern era, which has a place for it."""
    result = await client.read_resource("memo://today")
    if way.era == "modern":
        assert (result.ttl_ms, result.cache_scope) == (60_000, "public")


async def test_it_reads_through_templates(client):
    """Variables are decoded and typed; a path goes as deep as it likes."""
    line = await read(client, "orders://K%C3%B6ln%2F1/lines/4")
    assert line.mime_type == "application/json"
    assert line.text == '{"number":"Köln/1","next":5}'
    assert (await read(client, "tree://root/a/b/c")).text == "a/b/c"


async def test_it_reads_the_files_of_a_folder(client):
    """By the template, and one by a URI of its own."""
    by_path = await read(client, "docs://guide/start.md")
    assert by_path.text == (await read(client, "memo://start")).text
    assert by_path.text.startswith("# Start")
    assert by_path.mime_type == "text/markdown"


@pytest.mark.parametrize(
    "uri",
    [
        "memo://none",
        "tree://root/..%2f..%2fetc",
        "docs://../server.py",
        "docs://..%2fserver.py",
        "docs://%2fetc%2fpasswd",
        "docs:///etc/passwd",
        "docs://guide/%00",
        "docs://guide",
    ],
)
async def test_what_there_is_not_is_said_so(way, client, uri):
    """Whatever leads out of a folder looks like what was never there."""
    with pytest.raises(MCPError) as raised:
        await client.read_resource(uri)

    assert raised.value.error.code == (-32002 if way.era == "legacy" else -32602)
    assert raised.value.error.data == {"uri": uri}


async def test_a_variable_of_the_wrong_type_is_named(client):
    """There may be such a resource, but not under these words."""
    with pytest.raises(MCPError, match="/line") as raised:
        await client.read_resource("orders://1/lines/x")

    assert raised.value.error.code == -32602


async def test_it_completes_variables_of_templates(client):
    """A hundred at most, and how many there are."""
    ref = ResourceTemplateReference(uri=LINE)
    completion = (await client.complete(ref, {"name": "number", "value": "7"})).completion
    assert completion.values[:2] == ["70", "71"]
    assert (len(completion.values), completion.total, completion.has_more) == (100, 150, True)
