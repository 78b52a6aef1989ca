"""Gatelift as it was at a commit of its history, for daemons that are upgraded while their work runs."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("manager", "worker_agent", "kinds", "admission", "kube", "protos", "sandbox")
SECONDS_MAX = 60.0
WIRE = "gatelift_wire/v1/agent.proto"


def environment_of(commit: str, folder: Path) -> dict[str, str]:
    """Take the code of a commit into a folder; return the environment in which Python runs that code.

    Raises AssertionError where the history does not reach so far back (a shallow clone).
    """
    packed = _git("archive", commit, *PACKAGES)
    if packed.returncode:  # a shallow clone: where it came from may have more
        _git("fetch", "--quiet", "--depth=1", "origin", commit)
        packed = _git("archive", commit, *PACKAGES)
    assert packed.returncode == 0, f"a clone with its whole history is needed: {packed.stderr.decode()}"
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    made = [f"--{kind}=protos" for kind in ("python_out", "grpc_python_out")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", "protos", *made, WIRE]
    subprocess.run(command, cwd=folder, timeout=SECONDS_MAX, check=True)  # noqa: S603 - the same
    return {"PYTHONPATH": os.pathsep.join(str(folder / package) for package in PACKAGES)}


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    git = shutil.which("git")
    assert git is not None, "git is needed, which has the history"
    return subprocess.run(  # noqa: S603 - words of this repository
        [git, *words], cwd=ROOT, capture_output=True, timeout=SECONDS_MAX, check=False
    )
