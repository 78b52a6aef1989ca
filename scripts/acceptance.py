"""Runs the tests that show the ids of docs/keps.md, and lists id, test and result: `make acceptance`.

Scenarios on real API servers take minutes and are asked for by `--provider`; else they stand as *not run*. Ends with 1
if a test failed, or if one that can be run here shows nothing. Neighbour: `attacks` holds page and tests together.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from scripts import attacks

PAGE = Path("docs/keps.md")
NOT_RUN, PASSED = "not run", "passed"
REAL = "tests/e2e/"


SENTENCES = "| the document says |"
"""How the table begins in which each sentence of a document that asks for something has the ids that show it."""


def unshown(page: str) -> list[str]:
    """Return the sentences whose last column names no id, or one that has no row, one line each."""
    rows = {match[1] for match in map(attacks.ROW.match, page.splitlines()) if match is not None}
    found, inside = [], False
    for number, line in enumerate(page.splitlines(), start=1):
        if not line.startswith("|"):
            inside = False
        elif line.startswith(SENTENCES):
            inside = True
        elif inside and not line.startswith("|---"):
            named = attacks.ids_in([line.rstrip("| ").rpartition("|")[2]])
            if not named or named - rows:
                found.append(f"{PAGE}:{number}: {', '.join(sorted(named - rows)) or 'no id'} has no row here")
    return found


@dataclass(frozen=True, slots=True)
class Shows:
    """A test function and the ids that it shows in its name or docstring, and in all its parameters' ids."""

    file: str
    name: str
    always: frozenset[str]
    by_parameter: frozenset[str]

    @property
    def ids(self) -> frozenset[str]:
        """Return all that it may show."""
        return self.always | self.by_parameter


def functions(file: Path) -> list[Shows]:
    """Return the test functions of a file that show an id."""
    found = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            always = frozenset(attacks.ids_in([node.name, ast.get_docstring(node) or ""]))
            texts = [
                one.value
                for decorator in node.decorator_list
                for one in ast.walk(decorator)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            shows = Shows(file.as_posix(), node.name, always, frozenset(attacks.ids_in(texts)))
            found += [shows] if shows.ids else []
    return found


def results(report: Path, tests: Iterable[Shows]) -> dict[tuple[str, str], dict[str, str]]:
    """Return by (file, function) what each of its cases came to, of a report in JUnit's format."""
    known = {(one.file, one.name) for one in tests}
    found: dict[tuple[str, str], dict[str, str]] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 (pytest's own)
        name = case.attrib["name"]
        of = case.attrib["classname"].replace(".", "/") + ".py", name.partition("[")[0]
        bad = next((one.tag for one in case if one.tag in {"failure", "error", "skipped"}), "")
        if of in known:
            found.setdefault(of, {})[name] = {"failure": "failed", "error": "failed"}.get(bad, bad or PASSED)
    return found


def run(tests: Iterable[Shows], mark: str, environment: dict[str, str]) -> dict[tuple[str, str], dict[str, str]]:
    """Run test functions, and return what their cases came to."""
    chosen = sorted({f"{one.file}::{one.name}" for one in tests})
    if not chosen:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", *chosen, "-q", "-n", "0", "-m", mark, f"--junitxml={report}"]
        subprocess.run(command, env=os.environ | environment, stdout=sys.stderr, check=False)
        return results(report, tests) if report.exists() else {}


def listed(wanted: Iterable[str], tests: list[Shows], came_to: dict[tuple[str, str], dict[str, str]]) -> list[str]:
    """Return a line for each id and test: id, result, test."""
    lines = []
    for id_ in wanted:
        for one in (each for each in tests if id_ in each.ids):
            cases = came_to.get((one.file, one.name), {})
            if id_ not in one.always:
                cases = {name: result for name, result in cases.items() if id_ in attacks.ids_in([name])}
            bad = sorted({result for result in cases.values() if result != PASSED})
            result = ", ".join(bad) if bad else PASSED if cases else NOT_RUN
            lines.append(f"{id_:<8} {result:<8} {one.file}::{one.name}")
    return lines


def main() -> int:
    """List what the ids of the page come to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", default="", help="run the scenarios on real API servers, too: local, kind")
    parser.add_argument("--check", action="store_true", help="run nothing: each sentence of the page names ids of it")
    parser.add_argument("ids", nargs="*", help="ids, or their beginnings (RE-); all without")
    chosen = parser.parse_args()
    if chosen.check:
        problems = unshown(PAGE.read_text())
        print("\n".join(problems) or f"{PAGE}: each sentence names what shows it")
        return 1 if problems else 0
    rows = attacks.rows(PAGE)
    wanted = [row.id for row in rows if not chosen.ids or row.id.startswith(tuple(chosen.ids))]
    files = sorted({file for row in rows for file, _ in row.tests if file.endswith(".py")})
    tests = [one for file in files for one in functions(Path(file)) if one.ids & {*wanted}]
    here = [one for one in tests if not one.file.startswith(REAL)]
    came_to = run(here, "not e2e", {})
    if chosen.provider:
        real = [one for one in tests if one.file.startswith(REAL)]
        came_to |= run(real, "e2e", {"GATELIFT_E2E_PROVIDER": chosen.provider, "PYTHONPATH": "tests"})
    lines = listed(wanted, tests, came_to)
    print("\n".join(lines))
    left = [line for line in lines if f" {NOT_RUN} " in line and (chosen.provider or REAL not in line)]
    return 1 if left or any(" failed" in line for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
