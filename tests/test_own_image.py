"""IS-48: on which bases the scenarios build our own image; with a `docker` that is a shell script."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatelift_sandbox.errors import MissingToolError, SandboxError
from support.e2e import own_image

KEPT, BUILT = "sha256:" + 64 * "a", "sha256:" + 64 * "b"
DOCKER = """#!/bin/sh
echo "$@" >> "{folder}/calls"
case "$1" in
  images) test ! -e "{folder}/imported" || echo {kept} ;;
  import) cat > "{folder}/imported" ;;
  build) cp -R "$3" "{folder}/context"; echo {built} ;;
esac
"""
DEBOOTSTRAP = """#!/bin/sh
test ! -e "{folder}/broken" || {{ echo 'E: no such suite' >&2; exit 1; }}
for last; do :; done
echo made > "$last/file"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GATELIFT_IMAGE_BUILDER", "GATELIFT_IMAGE_BASE", "PIP_CERT", *own_image.PIP):
        monkeypatch.delenv(name, raising=False)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("docker", DOCKER), ("debootstrap", DEBOOTSTRAP)):
        (programs / name).write_text(text.format(folder=tmp_path, kept=KEPT, built=BUILT))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    return tmp_path


def test_is_48_bases_that_somebody_names_are_taken_as_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATELIFT_IMAGE_BUILDER", "python:3.13@sha256:1")
    monkeypatch.setenv("GATELIFT_IMAGE_BASE", "python:3.13-slim@sha256:2")
    assert own_image.bases() == ("python:3.13@sha256:1", "python:3.13-slim@sha256:2")
    assert not (folder / "calls").exists()


def test_is_48_a_base_is_made_of_debian_packages_once(folder: Path) -> None:
    assert own_image.bases() == (KEPT, KEPT)
    assert b"made\n" in (folder / "imported").read_bytes()
    assert own_image.bases() == (KEPT, KEPT)
    assert (folder / "calls").read_text().count("import ") == 1


def test_is_48_pip_reaches_in_the_build_what_it_reaches_on_this_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "ca.pem").write_text("a mirror's")
    monkeypatch.setenv("PIP_CERT", str(folder / "ca.pem"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example.org/simple")
    assert own_image.bases() == (BUILT, KEPT)
    assert (folder / "context/Dockerfile").read_text().splitlines() == [
        f"FROM {KEPT}",
        "ENV PIP_INDEX_URL=https://mirror.example.org/simple",
        "COPY trusted.pem /etc/ssl/trusted.pem",
        "ENV PIP_CERT=/etc/ssl/trusted.pem",
    ]
    assert (folder / "context/trusted.pem").read_text() == "a mirror's"


def test_is_48_without_a_base_the_way_out_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(MissingToolError, match=r"install debootstrap and be root, or .* GATELIFT_IMAGE_BUILDER and"):
        own_image.bases()


def test_is_48_what_fails_is_told_in_a_line(folder: Path) -> None:
    (folder / "broken").touch()
    with pytest.raises(SandboxError, match=r"image: `debootstrap --variant=minbase` failed: E: no such suite$"):
        own_image.bases()
    assert not (folder / "imported").exists()
