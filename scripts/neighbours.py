"""The files that a docstring calls its neighbours are neighbours: one imports the other, or names it in its code.

A sentence that begins with `Neighbours:` or `Neighbour:` names files in backticks, each with what it is to this one.
What is named must be there, and must be met in the code: imported by one of the two, or named as what the other keeps
(`core.doubts` of `state.doubts`), or defined in this very file. Claims that nobody can check rot first: that there are
no other users is not said.

Run: `python -m scripts.neighbours`; it prints each name that is no neighbour, and fails if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.rooms import ROOT, imported_names

PACKAGES = {
    "gatelift": "manager",
    "gatelift_admission": "admission",
    "gatelift_agent": "worker_agent",
    "gatelift_kinds": "kinds",
    "gatelift_kube": "kube",
    "gatelift_sandbox": "sandbox",
    "gatelift_wire": "protos",
}
SENTENCE = re.compile(r"Neighbours?:(.*?)(?:\n\n|\Z)", re.DOTALL)
CLAIM = re.compile(r"\bonly (?:users?|callers?|importers?)\b|\bOnly\b[^.;]*\b(?:imports?|calls?|uses?) it\b")
"""What says that there are no others: that is for a contract of `.importlinter`, or for nobody."""
BRACKETS = re.compile(r"\([^()]*\)")
NAME = re.compile(r"`([\w./]+)`")


@dataclass(frozen=True)
class Module:
    """What a file says of its neighbours, and whom it meets."""

    neighbours: tuple[str, ...]
    imports: frozenset[str]
    """Dotted names, of modules and of what they define."""
    words: frozenset[str]
    """Names and attributes in its code, and what it defines."""
    claims: tuple[str, ...] = ()
    """What its docstrings say of there being no others."""


def read(text: str) -> Module:
    """Read a file."""
    tree = ast.parse(text)
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            words.add(node.name)
    said = SENTENCE.search(ast.get_docstring(tree) or "")
    named = NAME.findall(BRACKETS.sub("", said.group(1))) if said else []
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)]
    claims = tuple(found.group() for each in texts for found in CLAIM.finditer(each))
    return Module(tuple(named), frozenset(imported_names(tree)), frozenset(words), claims)


def modules(root: Path = ROOT) -> dict[str, Module]:
    """Read all files of the packages, by dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((root / folder / package).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = read(path.read_text())
    return found


def _meets(one: str, other: str, known: dict[str, Module]) -> bool:
    return (
        other in known[one].imports
        or one in known[other].imports
        or other.rpartition(".")[2] in known[one].words
        or one.rpartition(".")[2] in known[other].words
    )


def _named(name: str, known: dict[str, Module]) -> list[str]:
    """Return the modules that a name may mean: a file, a folder with all that it holds, or what a file defines."""
    short = name.removesuffix(".py").replace("/", ".")
    for part in (short, short.rpartition(".")[0]):
        found = [each for each in known if part and f".{part}." in f".{each}."]
        if found:
            return found
    return []


def strangers(known: dict[str, Module], root: Path = ROOT) -> list[tuple[str, str]]:
    """Return each file with each name among its neighbours that is none."""
    found = []
    for one, module in known.items():
        for name in module.neighbours:
            others = [each for each in _named(name, known) if each != one]
            is_file = "/" in name and (root / name).is_file()
            is_own = not others and name.rpartition(".")[2] in module.words
            if not (is_file or is_own or any(_meets(one, other, known) for other in others)):
                found.append((one, name))
    return found


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    known = modules()
    wrong = strangers(known)
    claimed = [(one, claim) for one, module in known.items() for claim in module.claims]
    for one, name in wrong:
        print(f"{one}: `{name}` is no neighbour: neither imports or names the other")
    for one, claim in claimed:
        print(f"{one}: `{claim}` is what nothing holds: name neighbours, or write a contract")
    told = sum(1 for each in known.values() if each.neighbours)
    print(f"{told} files name their neighbours")
    return 1 if wrong or claimed else 0


if __name__ == "__main__":
    sys.exit(main())
