"""Holds files below 500 lines, those of some folders below what `FOLDER_LINES_MAX` says, functions below 70.

Prints each that is longer, and fails. Run from the root: `python scripts/lengths.py`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
FOLDER_LINES_MAX = {
    "admission/gatelift_admission": 400,
    "manager/gatelift/core": 400,
    "worker_agent/gatelift_agent/core": 400,
}
"""Folders whose files stop earlier: what decides is to be read in one sitting."""


def allowed(name: str) -> int:
    """Return how many lines a file may have, by its path below the root of the repository."""
    limits = [limit for folder, limit in FOLDER_LINES_MAX.items() if name.startswith(f"{folder}/")]
    return min(limits, default=FILE_LINES_MAX)


def long_file(name: str, text: str) -> list[str]:
    """Name a file that is longer than it may be."""
    lines = len(text.splitlines())
    return [f"{name}: {lines} lines, {allowed(name)} allowed"] if lines > allowed(name) else []


def long_functions(name: str, text: str) -> list[str]:
    """Name each function of a file that is longer than the limit, docstring not counted."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.end_lineno is None:
            continue
        length = node.end_lineno - node.lineno + 1
        first = node.body[0]
        if ast.get_docstring(node) is not None and first.end_lineno is not None:
            length -= first.end_lineno - first.lineno + 1
        if length > FUNCTION_LINES_MAX:
            found.append(f"{name}:{node.lineno}: function {node.name} has {length} lines, {FUNCTION_LINES_MAX} allowed")
    return found


def tracked(root: Path) -> list[str]:
    """Return every Python file that git tracks and that is there, but for generated ones."""
    listed = subprocess.run(["git", "ls-files", "*.py"], check=True, capture_output=True, text=True, cwd=root).stdout
    names = [name for name in listed.split() if not name.endswith(("_pb2.py", "_pb2_grpc.py"))]
    return [name for name in names if (root / name).exists()]


def problems(root: Path, names: list[str]) -> list[str]:
    """Name all that is too long."""
    found = []
    for name in names:
        text = (root / name).read_text(encoding="utf-8")
        found += [*long_file(name, text), *long_functions(name, text)]
    return found


def main() -> int:
    """Check all files; return 1 if one is too long."""
    root = Path.cwd()
    names = tracked(root)
    found = problems(root, names)
    short = ", ".join(f"{limit} in {folder}" for folder, limit in FOLDER_LINES_MAX.items())
    print(
        "\n".join(found)
        or f"{len(names)} files within {FILE_LINES_MAX} lines ({short}), functions within {FUNCTION_LINES_MAX}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
