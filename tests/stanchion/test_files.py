"""Files as resources: what is read, as text or as bytes."""

from __future__ import annotations

import pytest

from stanchion import UnknownTarget
from stanchion.files import File, guess_mime_type


@pytest.fixture
def root(tmp_path):
    """A folder with a file, a folder, and links to a file and to nothing."""
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "b.png").write_bytes(b"\x89PNG\xff")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("a.md")
    (tmp_path / "circle").symlink_to("circle")
    return tmp_path


class TestFile:
    def test_read(self, root):
        """A chosen file is read as it is at that time; links are followed."""
        assert File(root / "link").read().body == "a"
        file = File(root / "a.md")
        (root / "a.md").write_bytes(b"\xff")
        assert (file.read().body, file.mime_type) == (b"\xff", "text/markdown")

    @pytest.mark.parametrize("name", ["none", "sub", "circle"])
    def test_gone(self, root, name):
        """A file that is gone, or no file any more, is not found."""
        with pytest.raises(UnknownTarget):
            File(root / name).read()

    @pytest.mark.parametrize(
        ("name", "raw", "body", "mime_type"),
        [
            ("x", b"a", "a", "text/plain"),
            ("x", b"\xff", b"\xff", "application/octet-stream"),
            ("x.json", b"{}", "{}", "application/json"),
            ("x.svg", b"<svg/>", "<svg/>", "image/svg+xml"),
            ("x.png", b"a", b"a", "image/png"),
            ("x.json.gz", b"a", b"a", "application/octet-stream"),
        ],
    )
    def test_text_or_bytes(self, tmp_path, name, raw, body, mime_type):
        """Text goes out as text only if its type allows it and it is UTF-8."""
        (tmp_path / name).write_bytes(raw)
        contents = File(tmp_path / name).read()
        assert (contents.body, contents.mime_type) == (body, mime_type)

    @pytest.mark.parametrize("mime_type", ["text/x; charset=utf-8", "Application/X+JSON"])
    def test_types_given(self, root, mime_type):
        """A type given goes before the guess, parameters and case aside."""
        assert File(root / "b.png", mime_type=mime_type).read().body == b"\x89PNG\xff"
        assert File(root / "link", mime_type=mime_type).read().body == "a"


def test_guesses():
    """A name without an ending says nothing."""
    assert guess_mime_type("README") is None
