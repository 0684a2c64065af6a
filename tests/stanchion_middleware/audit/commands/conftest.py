"""Trails that a real server wrote, and the command to read them."""

from __future__ import annotations

from contextlib import nullcontext

import anyio
import pytest
from typer.testing import CliRunner

from stanchion import Principal, Server
from stanchion_middleware import (
    RBAC,
    Audit,
    FileAnchor,
    FileSubjectKeys,
    HeadSigner,
    JsonLinesFile,
    KeyRing,
    Rule,
)
from stanchion_middleware.audit.commands import main
from stanchion_testing import PeerError, connect

ISSUER = "https://login.example"
CALLERS = (("ada", "clerk", "acme"), ("bob@example", "intern", "zeta"))


def desk(audit):
    """Give a server behind *audit* where clerks may refund, and nobody else may do anything."""
    rbac = RBAC([Rule(role="clerk", target="refund")])
    server = Server("desk", "1", middleware=[audit, rbac])

    @server.tool
    async def refund(number: str) -> str:
        return f"paid {number}"

    return server


async def serve(audit):
    """Have both callers call, one of whom may not."""
    async with desk(audit) as server:
        for who, role, tenant in CALLERS:
            principal = Principal(who, issuer=ISSUER, roles=frozenset({role}), tenant=tenant)
            async with connect(server, principal=principal) as peer:
                refused = nullcontext() if role == "clerk" else pytest.raises(PeerError)
                for number in ("A-1", "=B-2"):
                    with refused:
                        await peer.call_tool("refund", {"number": number})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, so that names of files are short."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def signer(folder):
    """A signer, whose public key is in `signer.pub`."""
    made = HeadSigner("s1", b"s" * 32)
    (folder / "signer.pub").write_bytes(made.public_key)
    return made


@pytest.fixture
def trail(folder, signer):
    """A trail in `audit.jsonl`, signed and with its heads in `heads.jsonl`."""
    sink = JsonLinesFile(folder / "audit.jsonl")
    audit = Audit(sink, capture="redacted", signer=signer, anchors=[FileAnchor("heads.jsonl")])
    anyio.run(serve, audit)
    return folder / "audit.jsonl"


@pytest.fixture
def keyed(folder):
    """A trail with keyed hashes in `keyed.jsonl`, whose secret is in `k1.key`."""
    secret = b"k" * 40
    (folder / "k1.key").write_bytes(secret)
    sink = JsonLinesFile(folder / "keyed.jsonl")
    anyio.run(serve, Audit(sink, chain_keys=KeyRing({"k1": secret})))
    return folder / "keyed.jsonl"


@pytest.fixture
def sealed(folder):
    """A trail in `sealed.jsonl` whose subjects have their keys in `subjects.db`."""
    sink = JsonLinesFile(folder / "sealed.jsonl")
    keys = FileSubjectKeys(folder / "subjects.db")
    anyio.run(serve, Audit(sink, capture="redacted", subject_keys=keys))
    return folder / "sealed.jsonl"


@pytest.fixture
def audit():
    """Run `stanchion audit` with these arguments."""
    return lambda *arguments: CliRunner().invoke(main, [str(each) for each in arguments])
