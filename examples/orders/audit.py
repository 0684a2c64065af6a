"""The demo's audit trail: where it is kept, and what its verification says of it.

The heads are signed with a key that lives as long as the demo, and kept in a file of their own as
well. In production the key and that file belong where the server cannot rewrite them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
from rich.console import Console

from stanchion_middleware import Audit, FileAnchor, HeadSigner, JsonLinesFile, Trail

KEY_ID = "demo"

TAMPERED = (b'"outcome":"denied"', b'"outcome":"ok"')
"""What somebody changes who would rather have been let in."""


class DemoTrail:
    """A trail in *folder*, which both eras of the demo write one after the other."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "audit.jsonl"
        self._tampered = folder / "tampered.jsonl"
        self._heads = folder / "heads.jsonl"
        self._public_key = folder / "demo.public"
        self._signer = HeadSigner(KEY_ID, os.urandom(32))
        self._public_key.write_text(self._signer.public_key.hex())

    def layer(self) -> Audit:
        """Make the layer for one server; it goes on where the one before it ended."""
        return Audit(
            JsonLinesFile(self._path),
            capture="redacted",
            signer=self._signer,
            anchors=[FileAnchor(self._heads)],
        )

    def outcomes(self) -> list[str]:
        """Give the outcomes of tool calls that it tells, in order."""
        entries = [orjson.loads(line.text) for line in Trail(self._path)]
        bodies = [entry["body"] for entry in entries if entry["kind"] == "call"]
        return [body["outcome"] for body in bodies if body["call"]["method"] == "tools/call"]

    def show(self, console: Console) -> bool:
        """Verify it, and a copy that was tampered with; say whether one is sound and one not."""
        self._tampered.write_bytes(self._path.read_bytes().replace(*TAMPERED, 1))
        sound = self._verify(console, self._path)
        caught = not self._verify(console, self._tampered)
        return sound and caught

    def _verify(self, console: Console, path: Path) -> bool:
        command = ["audit", "verify", path.name, "--signer", f"{KEY_ID}={self._public_key.name}"]
        command += ["--anchor", self._heads.name]
        console.print(f"$ stanchion {' '.join(command)}", style="bold", highlight=False)
        done = _run(command, path.parent)
        console.print(done.stdout.strip(), markup=False, highlight=False, soft_wrap=True)
        if done.stderr:
            console.print(done.stderr.strip(), markup=False, highlight=False, soft_wrap=True)

        return done.returncode == 0


def _run(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user would, in the environment that the demo runs in."""
    program = Path(sys.executable).with_name("stanchion")
    return subprocess.run(
        [program, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
