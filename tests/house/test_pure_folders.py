"""RM-5: what decides is kept from the world by folder: a file that touches it is refused wherever it is put."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.rooms import ROOT

TREES = ("admission", "kinds", "kube", "manager", "protos", "sandbox", "worker_agent")
PROBE = "import time\n\nNOW = time.time()\n"


def pure_folders() -> dict[str, Path]:
    """Return the folders of which `.importlinter` says that they never touch the world, by their dotted names."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    names = parser["importlinter:contract:pure"]["source_modules"].split()
    folders = (Path(tree) / name.replace(".", "/") for name in names for tree in TREES)
    return {".".join(folder.parts[1:]): folder for folder in folders if (ROOT / folder).is_dir()}


def refused(tree: Path) -> str:
    """Run import-linter over a copy of the sources; return what it says is wrong, "" for nothing."""
    paths = os.pathsep.join(str(tree / each) for each in TREES)
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}
    linter = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(  # noqa: S603 (our own linter, over our own files)
        [linter, "--config", ".importlinter", "--no-cache"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout if ran.returncode else ""


def test_rm_5_a_file_that_asks_for_the_time_is_refused_in_each_folder_that_decides(tmp_path: Path) -> None:
    for each in TREES:
        shutil.copytree(ROOT / each, tmp_path / each, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / ".importlinter", tmp_path)
    assert refused(tmp_path) == ""
    folders = pure_folders()
    assert len(folders) >= 10
    for folder in folders.values():
        (tmp_path / folder / "probe.py").write_text(PROBE)
    said = refused(tmp_path)
    assert [name for name in folders if f"{name}.probe -> time" not in said] == []
