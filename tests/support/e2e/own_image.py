"""Our own image for scenarios that run it: `deploy/Dockerfile` on bases that can be had without a registry of images.

`GATELIFT_IMAGE_BUILDER` and `GATELIFT_IMAGE_BASE` name bases by digest, as whoever builds the image does. Without them
one is made of Debian packages. The engine keeps both, so nothing is built twice until the sources change.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from docker.errors import BuildError, DockerException  # type: ignore[import-untyped]  # docker ships no types
from testcontainers.core.image import DockerImage

from gatelift_sandbox.errors import MissingToolError, SandboxError

ROOT = Path(__file__).resolve().parents[3]
IMAGE = "gatelift.test/gatelift:e2e"
SUITE = "bookworm"
PACKAGES = ("ca-certificates", "gcc", "libc6-dev", "python3", "python3-dev", "python3-venv")
"""A Python with what `scripts/install_into` needs; it is builder and base at once."""
LABEL = "dev.gatelift.test=own-image"
STALE = "24h"
"""What earlier sources have left in the engine, and nothing refers to, is removed after a day."""

BASE_SECONDS = 900.0
"""Half a minute of a processor and a hundred megabytes to fetch, once for an engine."""
BUILD_SECONDS = 1000
"""Two minutes and a half on two cores, nearly all of it for the compiled engine, without a word in between."""
COMMAND_SECONDS = 120.0
LINES_TOLD = 5
PIP = ("PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")
"""What pip on this machine knows of packages, it has to know in the build as well; so whom it trusts (`PIP_CERT`)."""


def built() -> str:
    """Build the image from this checkout and return its name. Raises SandboxError, in a line that names the way out."""
    builder, base = bases()
    _docker(COMMAND_SECONDS, "image", "prune", "--force", "--filter", f"label={LABEL}", "--filter", f"until={STALE}")
    image = DockerImage(
        path=ROOT,
        docker_client_kw={"timeout": BUILD_SECONDS},
        tag=IMAGE,
        clean_up=False,
        dockerfile_path="deploy/Dockerfile",
        buildargs={"BUILDER": builder, "BASE": base},
        network_mode="host",  # it is this machine that reaches the packages
        rm=True,
        forcerm=True,
    )
    try:
        with image:
            return IMAGE
    except BuildError as error:
        lines = [str(each["stream"]).strip() for each in error.build_log if "stream" in each]
        raise SandboxError(f"our own image: {error}: {' | '.join(filter(None, lines[-LINES_TOLD:]))}") from None
    except DockerException as error:
        raise SandboxError(f"our own image: {error}") from error


def bases() -> tuple[str, str]:
    """Return builder and base, each by digest or by its id in this engine. Raises SandboxError."""
    builder, base = (os.environ.get(f"GATELIFT_IMAGE_{name}", "") for name in ("BUILDER", "BASE"))
    if builder and base:
        return builder, base
    made = _debian()
    return _trusting(made, os.environ), made


def _debian() -> str:
    """Return the id of a Debian with a Python, made where the engine has none yet."""
    recipe = f"{SUITE} {' '.join(PACKAGES)}"
    name = f"gatelift.test/python:{SUITE}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    if known := _docker(COMMAND_SECONDS, "images", "--quiet", "--no-trunc", name):
        return known
    if shutil.which("debootstrap") is None or os.geteuid():
        raise MissingToolError(
            "our own image: no base for it: install debootstrap and be root, or name bases by digest in"
            " GATELIFT_IMAGE_BUILDER and GATELIFT_IMAGE_BASE"
        )
    with tempfile.TemporaryDirectory(prefix="gatelift-debian-") as folder:
        packages = f"--include={','.join(PACKAGES)}"
        _run(BASE_SECONDS, ["debootstrap", "--variant=minbase", packages, SUITE, folder])
        leave_out = [f"--exclude=./{each}" for each in ("var/cache/apt/*", "var/lib/apt/lists/*", "usr/share/doc/*")]
        with subprocess.Popen(  # noqa: S603 (tar by PATH)
            ["tar", "-C", folder, "--numeric-owner", *leave_out, "-c", "."],  # noqa: S607
            stdout=subprocess.PIPE,
        ) as tar:
            _run(BASE_SECONDS, ["docker", "import", "--change", f"LABEL {LABEL}", "-", name], stdin=tar)
        if tar.returncode:
            _docker(COMMAND_SECONDS, "rmi", name)
            raise SandboxError(f"our own image: tar of a base has failed ({tar.returncode})")
    return _docker(COMMAND_SECONDS, "images", "--quiet", "--no-trunc", name)


def _trusting(base: str, environment: Mapping[str, str]) -> str:
    """Return the id of the image in which pip reaches what it reaches on this machine."""
    lines = [f"FROM {base}", *(f"ENV {name}={environment[name]}" for name in PIP if environment.get(name))]
    with tempfile.TemporaryDirectory(prefix="gatelift-builder-") as folder:
        if environment.get("PIP_CERT"):
            shutil.copy(environment["PIP_CERT"], Path(folder, "trusted.pem"))
            lines += ["COPY trusted.pem /etc/ssl/trusted.pem", "ENV PIP_CERT=/etc/ssl/trusted.pem"]
        if len(lines) == 1:
            return base
        Path(folder, "Dockerfile").write_text("\n".join(lines))
        return _docker(COMMAND_SECONDS, "build", "--quiet", folder)


def _docker(seconds: float, *arguments: str) -> str:
    return _run(seconds, ["docker", *arguments])


def _run(seconds: float, command: list[str], stdin: subprocess.Popen[bytes] | None = None) -> str:
    """Return what a command prints. `DOCKER_BUILDKIT=0`: only the engine's own builder knows images by their id."""
    try:
        done = subprocess.run(  # noqa: S603 (docker and debootstrap by PATH)
            command,
            stdin=subprocess.DEVNULL if stdin is None else stdin.stdout,
            env={**os.environ, "DOCKER_BUILDKIT": "0"},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SandboxError(f"our own image: `{' '.join(command[:2])}` was not done after {seconds:g} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).splitlines()[-LINES_TOLD:]
        raise SandboxError(f"our own image: `{' '.join(command[:2])}` failed: {' | '.join(lines)}")
    return done.stdout.strip()
