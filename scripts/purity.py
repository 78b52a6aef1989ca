"""What decides touches nothing: it imports what is on a list, asks no clock, opens nothing, loads no module by name.

import-linter holds who may import whom among our own packages. It follows statements alone, and its list of what
touches the world can miss one. So the folders of its contract `pure` are read here as well: a module that is not ours
must be one of `ALLOWED`, and no builtin, clock or loader may be named. Wherever a contract forbids imports, a module
that is loaded by its name is not ours: what is ours is imported by a statement, which import-linter sees.

Run: `python -m scripts.purity`; it prints what is refused, and fails if anything is.
"""

from __future__ import annotations

import ast
import configparser
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.rooms import ROOT

TREES = ("admission", "kinds", "kube", "manager", "protos", "sandbox", "worker_agent")
OURS = ("gatelift", "scripts", "tests", "bench", "support")
"""How the names of our own packages begin."""
ALLOWED = frozenset(
    {
        *("__future__", "abc", "bisect", "collections", "dataclasses", "datetime", "enum", "fractions", "functools"),
        *("hashlib", "heapq", "hmac", "inspect", "itertools", "json", "math", "msgspec", "re", "traceback", "types"),
        *("typing", "unicodedata", "urllib", "yaml"),
    }
)
"""Modules that compute from what they are given. `datetime` has a clock: see `CLOCKS`."""
FROM = {"urllib": frozenset(("parse",))}
"""Packages of which a part computes."""
BUILTINS = frozenset(
    {
        *("__builtins__", "__import__", "__loader__", "breakpoint", "compile", "eval", "exec", "exit", "globals"),
        *("help", "input", "open", "print", "quit"),
    }
)
CLOCKS = frozenset(("now", "today", "utcnow"))
"""Of `datetime` and `date`."""
LOADERS = frozenset(
    ("__import__", "import_module", "load_module", "exec_module", "find_spec", "spec_from_file_location")
)


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _names_of_datetime(tree: ast.AST) -> set[str]:
    """Return what a file calls the module `datetime` and what comes from it, names that are given to those included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.asname or each.name for each in node.names if each.name == "datetime"}
        elif isinstance(node, ast.ImportFrom) and node.module == "datetime":
            found |= {each.asname or each.name for each in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _dotted(node.value).partition(".")[0] in found:
            found |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return found


def _imports(node: ast.AST) -> Iterator[str]:
    """Yield what a statement imports of others."""
    if isinstance(node, ast.Import):
        names = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [f"{node.module}.{each.name}" for each in node.names]
    else:
        return
    for name in names:
        top, _, rest = name.partition(".")
        if top.startswith(OURS):
            continue
        if top not in ALLOWED or (top in FROM and rest.partition(".")[0] not in FROM[top]):
            yield name


def touches(text: str) -> list[tuple[int, str]]:
    """Return where a file that decides touches the world, and by what."""
    tree = ast.parse(text)
    clocks = _names_of_datetime(tree)
    found = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        found += [(line, name) for name in _imports(node)]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in BUILTINS:
            found.append((line, node.id))
        elif isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            if _dotted(node.value).partition(".")[0] in clocks:
                found.append((line, _dotted(node)))
        elif isinstance(node, ast.Attribute) and node.attr in LOADERS:
            found.append((line, node.attr))
    return sorted(found)


def loads(text: str) -> list[tuple[int, str]]:
    """Return where a file loads a module by a name that is ours, or that cannot be read here."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "importlib":
            found += [(node.lineno, each.name) for each in node.names if each.name in LOADERS and each.asname]
        if not isinstance(node, ast.Call):
            continue
        name = _dotted(node.func).rpartition(".")[2]
        if name in LOADERS:
            first = node.args[0] if node.args else None
            said = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
            if not said or said.startswith((*OURS, ".")):
                found.append((node.lineno, f"{name}({said})"))
    return found


def _named_by(contracts: Iterator[str], parser: configparser.ConfigParser) -> set[str]:
    return {name for each in contracts for name in parser.get(each, "source_modules", fallback="").split()}


def _contracts(root: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(root / ".importlinter")
    return parser


def pure_folders(root: Path = ROOT) -> dict[str, Path]:
    """Return the folders of which `.importlinter` says that they never touch the world, by their dotted names."""
    names = sorted(_named_by(iter(["importlinter:contract:pure"]), _contracts(root)))
    folders = (Path(tree) / name.replace(".", "/") for name in names for tree in TREES)
    return {".".join(folder.parts[1:]): folder for folder in folders if (root / folder).is_dir()}


def walled_files(root: Path = ROOT) -> list[Path]:
    """Return the files to which some contract of `.importlinter` forbids imports."""
    parser = _contracts(root)
    places = [root / tree / name.replace(".", "/") for name in _named_by(iter(parser), parser) for tree in TREES]
    files = {path for place in places for path in place.rglob("*.py")}
    return sorted(files | {file for place in places if (file := place.with_suffix(".py")).is_file()})


def problems(root: Path = ROOT) -> list[str]:
    """Say what is refused in a tree."""
    found = []
    for folder in pure_folders(root).values():
        for path in sorted((root / folder).rglob("*.py")):
            place = path.relative_to(root)
            found += [f"{place}:{line}: {name} touches the world" for line, name in touches(path.read_text())]
    for path in walled_files(root):
        place = path.relative_to(root)
        found += [f"{place}:{line}: {name} goes round the layers" for line, name in loads(path.read_text())]
    return found


def main() -> int:
    """Print what is refused; 1 if anything is."""
    found = problems()
    print("\n".join(found or [f"{len(pure_folders())} folders that decide touch nothing"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
