"""A folder of files: what is read, and that nothing outside ever is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stanchion import InvalidResource, InvalidResult, UnknownTarget
from stanchion.folder import MAX_LISTED_FILES, Folder

SECRET = "nobody may read this"


@pytest.fixture
def root(tmp_path):
    """A folder with files in it, and with ways out."""
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "rooted").mkdir()
    (tmp_path / "rooted" / "secret.txt").write_text(SECRET)
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_text("é\r\n", newline="")
    (root / "sub" / "b.png").write_bytes(b"\x89PNG\xff")
    (root / ".env").write_text(SECRET)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(SECRET)
    (root / "out").symlink_to(tmp_path / "secret.txt")
    (root / "away").symlink_to(tmp_path / "rooted")
    (root / "shown").symlink_to(".env")
    (root / "circle").symlink_to("circle")
    (root / "inside").symlink_to("sub/b.png")
    return root


class TestFolder:
    def test_read(self, root):
        """A file is read byte by byte as it is, as text where it is text."""
        folder = Folder(root)
        page, image = folder.read("a.md"), folder.read("sub/b.png")
        assert (page.body, page.mime_type) == ("é\r\n", "text/markdown")
        assert (image.body, image.mime_type) == (b"\x89PNG\xff", "image/png")
        assert folder.read("inside").body == image.body

    @pytest.mark.parametrize(
        "path",
        [
            "", ".", "..", "../secret.txt", "sub/../a.md", "sub/../../secret.txt", "/etc/passwd",
            "//etc/passwd", "\\..\\secret.txt", "..\\secret.txt", "a.md\0", "a.md\0.png", "C:/a",
            "%2e%2e/secret.txt", "sub//b.png", "sub/", "sub", "none", "a.md/x", "out", "away",
            "away/secret.txt", "shown", ".env", ".git/config", "circle", "circle/x", "x" * 5000,
            "a\udcff", "~", "~/x",
        ],
    )  # fmt: skip
    def test_nothing_else(self, root, path):
        """No spelling of a path and no link leads to anything outside or hidden."""
        with pytest.raises(UnknownTarget):
            Folder(root).read(path)

    @given(st.text("./\\%2ef0ab\0~:-", max_size=20) | st.text(max_size=20))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_no_path_leads_out(self, root, path):
        """Whatever is asked for, it is a file of the folder or nothing."""
        try:
            body = Folder(root, hidden=False).read(path).body
        except UnknownTarget:
            return

        assert body in ("é\r\n", b"\x89PNG\xff")

    def test_hidden(self, root):
        """Names that begin with a dot are served where that is asked for."""
        assert Folder(root, hidden=True).read(".git/config").body == SECRET

    def test_a_root_behind_a_link(self, root, tmp_path):
        """The folder itself may be reached through a link."""
        (tmp_path / "link").symlink_to(root)
        assert Folder(tmp_path / "link").read("a.md").body == "é\r\n"

    @pytest.mark.parametrize("swapped", ["a.md", "sub"])
    def test_a_link_put_there_meanwhile(self, root, swapped, tmp_path, monkeypatch):
        """A step that becomes a link between the check and the reading is not followed."""
        folder, path = Folder(root), "a.md" if swapped == "a.md" else "sub/b.png"
        (tmp_path / "b.png").write_text(SECRET)
        locate = Folder._locate

        def locate_then_swap(self, path):
            found = locate(self, path)
            (root / swapped).rename(root / "before")
            (root / swapped).symlink_to(tmp_path / "secret.txt" if path == "a.md" else tmp_path)
            return found

        monkeypatch.setattr(Folder, "_locate", locate_then_swap)
        with pytest.raises(UnknownTarget):
            folder.read(path)

    def test_without_steps(self, root, monkeypatch):
        """Where the system cannot open step by step, the whole path is opened."""
        monkeypatch.setattr(os, "supports_dir_fd", set())
        assert Folder(root).read("sub/b.png").body == b"\x89PNG\xff"

    def test_no_rights(self, root, monkeypatch):
        """A file that the server may not read is its owner's mistake, and no missing file."""

        def refuse(path, *args, **kwargs):
            raise PermissionError(13, "no", path)

        monkeypatch.setattr(os, "open", refuse)
        with pytest.raises(PermissionError):
            Folder(root).read("a.md")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
    @pytest.mark.timeout(20)
    def test_a_fifo(self, root):
        """What is no regular file is not found, and keeps nobody waiting."""
        os.mkfifo(root / "fifo")
        with pytest.raises(UnknownTarget):
            Folder(root).read("fifo")

        assert "fifo" not in dict(Folder(root).files())

    def test_size(self, root):
        """A file larger than the bound is not sent, one of just that size is."""
        assert Folder(root, max_bytes=5).read("sub/b.png").body == b"\x89PNG\xff"
        with pytest.raises(InvalidResult, match="more than 4 bytes"):
            Folder(root, max_bytes=4).read("sub/b.png")

    def test_descriptors_are_closed(self, root):
        """No way through leaves a descriptor open."""
        own = Path("/proc/self/fd")
        if not own.exists():
            pytest.skip("the system does not show descriptors")

        before = len(list(own.iterdir()))
        for path in ["a.md", "sub", "sub/b.png", "none", "sub/none", "out"] * 5:
            with suppress(UnknownTarget):
                Folder(root).read(path)

        assert len(list(own.iterdir())) == before

    def test_files(self, root):
        """What is listed is what can be read, in order, with sizes."""
        (root / "x\ny").write_text("")
        assert list(Folder(root).files()) == [("a.md", 4), ("inside", 5), ("sub/b.png", 5)]
        assert (".git/config", len(SECRET)) in Folder(root, hidden=True).files()

    def test_no_folder(self, root):
        """A folder must be one."""
        with pytest.raises(InvalidResource, match="no such folder"):
            Folder(root / "a.md")

    def test_resources(self, root):
        """Each file is a resource under its escaped path, with its size and type."""
        (root / "a b#c.csv").write_text("1")
        made = {resource.uri: resource for resource in Folder(root).resources("d://", {"ttl": 3})}
        assert list(made) == ["d://a%20b%23c.csv", "d://a.md", "d://inside", "d://sub/b.png"]
        csv = made["d://a%20b%23c.csv"]
        assert (csv.name, csv.size, csv.mime_type, csv.ttl) == ("a b#c.csv", 1, "text/csv", 3)
        assert csv.handler().body == "1"

    def test_too_many_to_list(self, root):
        """More files than a list should hold are refused, with what to do."""
        for number in range(MAX_LISTED_FILES):
            (root / f"{number}").touch()

        with pytest.raises(InvalidResource, match="listed=False"):
            Folder(root).resources("d://", {})

    def test_long_names(self, root):
        """A file whose URI a cursor could not hold is left to the template."""
        (root / ("é" * 100)).write_text("x")
        assert not [r for r in Folder(root).resources("d://", {}) if "%C3" in r.uri]
        assert Folder(root).read("é" * 100).body == "x"
