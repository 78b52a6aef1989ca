"""What the image holds (`scripts/install_into`, which its Dockerfile calls) is whole, and its engine is compiled."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALL_SECONDS = 1000.0
START_SECONDS = 60.0
PARTS = (
    "gatelift.app",
    "gatelift.webhooks.app",
    "gatelift_agent.app",
    "gatelift_sandbox.ensemble",
    "gatelift_wire.v1.agent_pb2_grpc",
)


def install(home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Install into folder `gatelift` of `home`, as somebody who stands there."""
    return subprocess.run(  # noqa: S603 (our own script)
        [str(ROOT / "scripts/install_into"), "gatelift"],
        cwd=home,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )


def run(*command: str, home: Path) -> str:
    """Return what an installed program prints; without the checkout and its environment."""
    done = subprocess.run(  # noqa: S603 (what was installed)
        command, cwd=home, env={"HOME": str(home)}, capture_output=True, text=True, timeout=START_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installation_has_all_daemons_the_manifests_and_the_compiled_engine(tmp_path: Path) -> None:
    folder = tmp_path / "gatelift"
    done = install(tmp_path)
    assert done.returncode == 0, done.stderr
    said = run(str(folder / "bin/gatelift"), "version", home=tmp_path)
    assert said == done.stdout.splitlines()[-1] + "\n"
    assert said.endswith("(admission engine: compiled)\n")
    python = str(folder / "bin/python")
    run(python, "-c", f"import {', '.join(PARTS)}", home=tmp_path)
    assert "Usage: gatelift manager" in run(str(folder / "bin/gatelift"), "manager", "--help", home=tmp_path)
    find = "import gatelift, pathlib; print(*pathlib.Path(gatelift.__file__).parent.glob('deploy/overlays/*'))"
    assert "management" in run(python, "-c", find, home=tmp_path)
    again = install(tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "usage: scripts/install_into FOLDER, which must not be there yet\n"


def test_without_a_c_compiler_nothing_is_installed_and_it_is_said_what_to_do(tmp_path: Path) -> None:
    done = install(tmp_path, CC="no-such-compiler")
    assert done.returncode == 2
    assert "there is no C compiler 'no-such-compiler'; install one" in done.stderr
    assert list(tmp_path.iterdir()) == []
