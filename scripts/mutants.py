"""Takes safety conditions out, one at a time, and looks whether a test notices: `make mutants`.

The table is `tests/mutants/*.yaml`. Each entry names a line of the code that decides (`anchor`, which must be there
exactly once), what stands there instead, and the tests of which one must fail. Killed means that an assertion failed;
an error, a time-out or a selection that is not there is no answer and fails the run, as does a mutant that survives.
A condition that is redundant by design names its second wall (`second_wall`): both are taken out together.

Nothing is changed in place: mutants live in copies of the tree, as many at once as there are cores.
"""

from __future__ import annotations

import argparse
import enum
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/mutants"
PACKAGE_FOLDERS = ("manager", "worker_agent", "protos", "kinds", "admission", "kube", "sandbox")
LEFT_OUT = (".git", ".venv", ".compiled", ".gatelift", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis")
"""Of the tree, what no test of a mutant needs in its copy."""

SECONDS_MAX = 120.0
"""Time limit of one mutant. The slowest selection takes ten seconds; a condition may be what ends a loop."""

BASELINE_SECONDS_MAX = 900.0
"""Time limit of all selections together on the tree as it is."""


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change of one file: `anchor` stands there exactly once."""

    file: str
    anchor: str
    instead: str


class SecondWall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What else holds when the condition is gone: which wall it is, in a sentence, and how it is taken out."""

    what: str
    edits: tuple[Edit, ...]


class Mutant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One condition, the rules or rows that it serves, how it is taken out, and who must notice."""

    id: str
    rules: tuple[str, ...]
    file: str
    anchor: str
    instead: str
    tests: tuple[str, ...]
    second_wall: SecondWall | None = None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that is changed."""
        also = self.second_wall.edits if self.second_wall is not None else ()
        return (Edit(file=self.file, anchor=self.anchor, instead=self.instead), *also)


class Verdict(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    BROKEN = "BROKEN: no assertion failed"
    TIMEOUT = "TIMEOUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A mutant's verdict; `by`: the assertion that failed, or what went wrong."""

    mutant: Mutant
    verdict: Verdict
    seconds: float
    by: str = ""


def load(folder: Path = TABLE) -> tuple[Mutant, ...]:
    """Return the whole table, by file and order. Raises ValueError for an id that is there twice."""
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.yaml")):
        found += msgspec.yaml.decode(path.read_bytes(), type=tuple[Mutant, ...])
    ids = [mutant.id for mutant in found]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise ValueError(f"ids that are there twice: {', '.join(twice)}")
    return tuple(found)


def misfits(mutants: Iterable[Mutant], root: Path = ROOT) -> list[str]:
    """Return what does not fit the tree: anchors that are not there exactly once, tests that are not there."""
    problems = []
    for mutant in mutants:
        for edit in mutant.edits:
            path = root / edit.file
            if not path.is_file():
                problems.append(f"{mutant.id}: there is no file {edit.file}")
                continue
            count = path.read_text().count(edit.anchor)
            if count != 1:
                problems.append(f"{mutant.id}: {edit.file} has {count} times, not once: {edit.anchor!r}")
            if edit.anchor == edit.instead:
                problems.append(f"{mutant.id}: {edit.file}: nothing is changed")
        problems += [f"{mutant.id}: {text}" for test in mutant.tests for text in _missing_test(test, root)]
        if not mutant.tests:
            problems.append(f"{mutant.id}: names no test")
    return problems


def _missing_test(test: str, root: Path) -> list[str]:
    file, _, function = test.partition("::")
    path = root / file
    if not path.is_file():
        return [f"there is no file {file}"]
    if function and f"def {function.partition('[')[0]}(" not in path.read_text():
        return [f"{file} has no test {function}"]
    return []


def mutate(edits: Sequence[Edit], root: Path) -> dict[Path, tuple[bytes, os.stat_result]]:
    """Change the files of a copy; return what they were, for `restore`."""
    before: dict[Path, tuple[bytes, os.stat_result]] = {}
    for edit in edits:
        path = root / edit.file
        before.setdefault(path, (path.read_bytes(), path.stat()))
        text = path.read_text()
        if text.count(edit.anchor) != 1:
            raise ValueError(f"{edit.file}: the anchor must be there once: {edit.anchor!r}")
        path.write_text(text.replace(edit.anchor, edit.instead))
    for path, (_, stat) in before.items():
        os.utime(path, (stat.st_atime, stat.st_mtime + 10.0))  # another moment, so that no cached bytecode is taken
    return before


def restore(before: dict[Path, tuple[bytes, os.stat_result]]) -> None:
    """Put back what `mutate` changed, with its time, so that cached bytecode counts again."""
    for path, (content, stat) in before.items():
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run of pytest: its exit code (None: it took too long), and what its verdict says."""

    code: int | None
    assertions: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    output: str = ""


def run_tests(tests: Iterable[str], root: Path, seconds: float, *, writes_bytecode: bool = False) -> Ran:
    """Run tests in a copy, on the copy's code."""
    with tempfile.NamedTemporaryFile(suffix=".json") as verdict:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(root / folder) for folder in (*PACKAGE_FOLDERS, "tests")),
            "GATELIFT_MUTANT_ROOT": str(root),
            "GATELIFT_MUTANT_VERDICT": verdict.name,
        }
        environment.pop("GATELIFT_EXPECTED_ENGINE", None)
        if not writes_bytecode:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        arguments = ["-q", "-n", "0", "-p", "no:cacheprovider", "-p", "support.mutant_verdict", "--tb=short"]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *arguments, *dict.fromkeys(tests)],
                cwd=root,
                env=environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Ran(code=None)
        said = json.loads(Path(verdict.name).read_text() or "{}")
        output = done.stdout + done.stderr
        return Ran(
            code=done.returncode,
            assertions=tuple(said.get("assertions", ())),
            others=tuple(said.get("others", ())),
            output=output,
        )


def judge(mutant: Mutant, ran: Ran, seconds: float) -> Result:
    """Say what a run means: killed by an assertion, and by nothing else."""
    if ran.code is None:
        return Result(mutant=mutant, verdict=Verdict.TIMEOUT, seconds=seconds)
    if ran.code == 0:
        return Result(mutant=mutant, verdict=Verdict.SURVIVED, seconds=seconds)
    if ran.code == 1 and ran.assertions:
        return Result(mutant=mutant, verdict=Verdict.KILLED, seconds=seconds, by=ran.assertions[0].splitlines()[0])
    why = ran.others[0] if ran.others else "\n".join(ran.output.splitlines()[-5:])
    return Result(mutant=mutant, verdict=Verdict.BROKEN, seconds=seconds, by=why)


def copy_tree(source: Path, target: Path) -> Path:
    """Copy the tree with the times of its files, so that cached bytecode still counts."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    return target


def run(mutants: Sequence[Mutant], jobs: int) -> list[Result]:
    """Run mutants in copies, several at once; the tree as it is passes all their tests first."""
    if not mutants:
        return []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        first = copy_tree(ROOT, Path(folder).resolve() / "0")
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        ran = run_tests(tests, first, BASELINE_SECONDS_MAX, writes_bytecode=True)
        if ran.code != 0:
            raise SystemExit(f"The tests of these mutants do not pass on the tree as it is:\n{ran.output[-4000:]}")
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copies.put(first if number == 0 else copy_tree(first, first.with_name(str(number))))

        def one(mutant: Mutant) -> Result:
            root = copies.get()
            began = time.monotonic()
            before = mutate(mutant.edits, root)
            try:
                ran = run_tests(mutant.tests, root, SECONDS_MAX)
            finally:
                restore(before)
                copies.put(root)
            result = judge(mutant, ran, time.monotonic() - began)
            print(_line(result), flush=True)
            return result

        with ThreadPoolExecutor(max_workers=jobs) as pool:
            return list(pool.map(one, mutants))


def _line(result: Result) -> str:
    mutant = result.mutant
    head = f"{result.verdict.value:9} {result.seconds:5.1f} s  {mutant.id:40} {', '.join(mutant.rules):14}"
    return f"{head}  {result.by[:160]}".rstrip()


def chosen(mutants: Sequence[Mutant], arguments: argparse.Namespace) -> Sequence[Mutant]:
    """Return the mutants that are asked for; a random choice says its seed. Raises SystemExit for an unknown id."""
    if arguments.only:
        known = {mutant.id: mutant for mutant in mutants}
        unknown = [name for name in arguments.only if name not in known]
        if unknown:
            raise SystemExit(f"no mutant {', '.join(unknown)}; --list names all")
        return [known[name] for name in arguments.only]
    if arguments.random is None:
        return mutants
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"== {arguments.random} of {len(mutants)} mutants, --seed {seed}", flush=True)
    return random.Random(seed).sample(list(mutants), min(arguments.random, len(mutants)))  # noqa: S311 - a choice of tests


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(description="Takes safety conditions out and looks whether a test notices.")
    parser.add_argument("--only", action="append", metavar="ID", help="this mutant; may be said several times")
    parser.add_argument("--random", type=int, metavar="N", help="as many, by chance")
    parser.add_argument("--seed", type=int, help="of the choice by chance; said where it is not given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at once")
    parser.add_argument("--list", action="store_true", help="print the table and do nothing")
    return parser.parse_args(words)


def main() -> int:
    """Run what is asked for; 1 where a mutant is not killed or does not fit the tree."""
    arguments = parsed()
    mutants = load()
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.id:40} {', '.join(mutant.rules):20} {mutant.file}")
        return 0
    wanted = chosen(mutants, arguments)
    problems = misfits(wanted)
    if problems:
        print("\n".join(problems))
        return 1
    results = run(wanted, max(1, arguments.jobs))
    left = [result for result in results if result.verdict is not Verdict.KILLED]
    print(f"{len(results) - len(left)} of {len(results)} mutants killed")
    for result in left:
        print(f"not killed: {_line(result)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
