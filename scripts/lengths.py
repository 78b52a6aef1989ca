"""Holds files below 500 lines and functions below 70; prints each that is longer and fails."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70


def long_functions(path: Path) -> list[str]:
    """Name each function of `path` that is longer than the limit, docstring not counted."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.end_lineno is None:
            continue
        length = node.end_lineno - node.lineno + 1
        first = node.body[0]
        if ast.get_docstring(node) is not None and first.end_lineno is not None:
            length -= first.end_lineno - first.lineno + 1
        if length > FUNCTION_LINES_MAX:
            found.append(f"{path}:{node.lineno}: function {node.name} has {length} lines, {FUNCTION_LINES_MAX} allowed")
    return found


def main() -> int:
    """Check every Python file that git tracks, but for generated ones."""
    listed = subprocess.run(["git", "ls-files", "*.py"], check=True, capture_output=True, text=True).stdout.split()
    problems = []
    for name in listed:
        path = Path(name)
        if name.endswith(("_pb2.py", "_pb2_grpc.py")) or not path.exists():
            continue
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES_MAX:
            problems.append(f"{path}: {lines} lines, {FILE_LINES_MAX} allowed")
        problems += long_functions(path)
    print(
        "\n".join(problems)
        or f"{len(listed)} files within {FILE_LINES_MAX} lines, functions within {FUNCTION_LINES_MAX}"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
