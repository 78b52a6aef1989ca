"""RM-5: what decides is kept from the world by folder: a file that touches it is refused wherever it is put."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import purity
from scripts.purity import TREES, pure_folders
from scripts.rooms import ROOT

PROBE = "import time\n\nNOW = time.time()\n"


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


ROUND_THE_LINTER = {
    "the time of a zone": "import datetime as dt\n\nNOW = dt.datetime.now(tz=dt.UTC)",
    "the time by a name": "from datetime import datetime\n\nclock = datetime\nNOW = clock.utcnow()",
    "the day": "from datetime import date as day\n\nTODAY = day.today()",
    "a clock that is handed on": "from datetime import datetime\n\nclock = datetime.now",
    "a drawn number": "import uuid\n\nONE = uuid.uuid4()",
    "a drawn number by its name": "from uuid import uuid4",
    "a file": "TEXT = open('/etc/hostname').read()",
    "a file by io": "import io\n\nTEXT = io.open('/etc/hostname').read()",
    "a module by its name": "import importlib\n\nimportlib.import_module('time')",
    "a module by a builtin": "__import__('time')",
    "what is loaded": "import sys\n\nsys.modules['time']",
    "a part that touches": "from urllib import request",
    "a part that touches, whole": "import urllib.request",
    "in a function": "def f():\n    import uuid",
    "a text that runs": "eval('1')",
}


@pytest.mark.parametrize("probe", ROUND_THE_LINTER.values(), ids=ROUND_THE_LINTER.keys())
def test_rm_5_what_touches_the_world_past_import_linter_is_seen(probe: str) -> None:
    assert purity.touches(probe)


def test_rm_5_what_computes_from_what_it_is_given_touches_nothing() -> None:
    quiet = "import json\nfrom datetime import UTC, datetime\nfrom urllib.parse import quote\n\nopen: bool = True\n"
    assert purity.touches(f"{quiet}datetime.fromtimestamp(now, UTC)\ncore.now\njob.now(obj)") == []


@pytest.mark.parametrize(
    "probe",
    [
        "import importlib\n\nimportlib.import_module('gatelift.core.works.following')",
        "import importlib\n\nimportlib.import_module('.works', 'gatelift.core')",
        "from importlib import import_module\n\nimport_module(NAME)",
        "from importlib import import_module as load\n\nload('gatelift.core')",
        "__import__('gatelift_agent')",
    ],
)
def test_rm_5_a_module_of_ours_that_is_loaded_by_its_name_is_seen(probe: str) -> None:
    assert purity.loads(probe)


def test_rm_5_no_folder_that_decides_touches_the_world_and_no_wall_is_gone_round() -> None:
    assert purity.loads("import importlib\n\nimportlib.import_module('kubernetes.aio')") == []
    assert {path.parent.name for path in purity.walled_files()} > {"adapters", "webhooks", "records"}
    assert purity.problems() == []
