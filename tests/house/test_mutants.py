"""The tool that takes safety conditions out (`make mutants`), and its table on the tree as it is."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from scripts import mutants
from scripts.mutants import Edit, Mutant, Ran, SecondWall, Verdict

LEAST = 60
"""A table that shrinks below this has lost what it is for."""

CODE = "def may_start(lease: float, now: float) -> bool:\n    return lease > now\n"
TEST = "def test_a_lease_that_ran_out() -> None:\n    assert True\n"
A_MUTANT = Mutant(
    id="lease",
    rules=("R1",),
    file="code.py",
    anchor="return lease > now",
    instead="return True",
    tests=("test_code.py::test_a_lease_that_ran_out",),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "test_code.py").write_text(TEST)
    return tmp_path


def _changed(**fields: object) -> Mutant:
    return msgspec.structs.replace(A_MUTANT, **fields)


def test_each_anchor_of_the_table_is_in_the_tree_exactly_once_and_each_test_is_there() -> None:
    """HD-55: who moves a line that decides moves its mutant with it, and learns so at once."""
    assert mutants.misfits(mutants.load()) == []


def test_the_table_has_every_rule_and_the_fifteen_conditions_that_nothing_missed() -> None:
    table = mutants.load()
    assert len(table) >= LEAST
    rules = set(re.findall(r"^\| ([RP]\d+) \|", (mutants.ROOT / "docs/protocol.md").read_text(), re.MULTILINE))
    assert rules - {rule for mutant in table for rule in mutant.rules} == set()
    assert len([mutant.id for mutant in table if "HD-54" in mutant.rules]) == 15


def test_a_mutant_that_fits_has_nothing_against_it(tree: Path) -> None:
    assert mutants.misfits([A_MUTANT], tree) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"anchor": "return lease >= now"}, "has 0 times, not once", id="an anchor that is not there"),
        pytest.param({"anchor": "lease"}, "has 2 times, not once", id="an anchor that is there twice"),
        pytest.param({"instead": "return lease > now"}, "nothing is changed", id="a change of nothing"),
        pytest.param({"file": "no.py"}, "there is no file no.py", id="a file that is not there"),
        pytest.param({"tests": ()}, "names no test", id="no test"),
        pytest.param({"tests": ("no.py",)}, "there is no file no.py", id="a file of tests that is not there"),
        pytest.param({"tests": ("test_code.py::test_x",)}, "has no test test_x", id="a test that is not there"),
        pytest.param(
            {"second_wall": SecondWall(what="another", edits=(Edit(file="code.py", anchor="yes", instead=""),))},
            "has 0 times, not once",
            id="a second wall that is not there",
        ),
    ],
)
def test_a_mutant_that_does_not_fit_the_tree_is_an_error(tree: Path, fields: dict[str, object], said: str) -> None:
    found = mutants.misfits([_changed(**fields)], tree)
    assert found
    assert said in found[0]


def test_an_id_that_is_there_twice_is_an_error(tmp_path: Path) -> None:
    text = msgspec.yaml.encode([A_MUTANT])
    (tmp_path / "a.yaml").write_bytes(text)
    (tmp_path / "b.yaml").write_bytes(text)
    with pytest.raises(ValueError, match="there twice: lease"):
        mutants.load(tmp_path)


def test_what_was_taken_out_is_put_back_with_its_time(tree: Path) -> None:
    path = tree / "code.py"
    before = path.stat()
    changed = mutants.mutate(A_MUTANT.edits, tree)
    assert "return True" in path.read_text()
    assert int(path.stat().st_mtime) != int(before.st_mtime), "or bytecode of what stood there before would count"
    mutants.restore(changed)
    assert path.read_text() == CODE
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_both_walls_are_taken_out_together(tree: Path) -> None:
    second = SecondWall(what="the name", edits=(Edit(file="code.py", anchor="def may_start", instead="def starts"),))
    changed = mutants.mutate(_changed(second_wall=second).edits, tree)
    assert (tree / "code.py").read_text() == CODE.replace("lease > now", "True").replace("may_start", "starts")
    mutants.restore(changed)
    assert (tree / "code.py").read_text() == CODE


@pytest.mark.parametrize(
    ("ran", "verdict"),
    [
        pytest.param(Ran(code=1, assertions=("t: AssertionError: no",)), Verdict.KILLED, id="an assertion"),
        pytest.param(Ran(code=0), Verdict.SURVIVED, id="nothing"),
        pytest.param(Ran(code=1, others=("t: KeyError: x",)), Verdict.BROKEN, id="an error"),
        pytest.param(Ran(code=2, output="ImportError"), Verdict.BROKEN, id="an import"),
        pytest.param(Ran(code=4, output="not found"), Verdict.BROKEN, id="a selection that is not there"),
        pytest.param(Ran(code=None), Verdict.TIMEOUT, id="a time-out"),
    ],
)
def test_killed_means_that_an_assertion_failed(ran: Ran, verdict: Verdict) -> None:
    assert mutants.judge(A_MUTANT, ran, 1.0).verdict is verdict


def test_a_run_tells_assertions_from_everything_else(tmp_path: Path) -> None:
    """By a real run of pytest with the plugin, on the code of this tree."""
    path = tmp_path / "test_all_sorts.py"
    path.write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def broken():\n"
        "    assert False, 'of the fixture'\n"
        "def test_of_the_fixture(broken): pass\n"
        "def test_an_error(): {}['x']\n"
        "def test_an_assertion(): assert 1 == 2\n"
        "def test_nothing_was_raised():\n"
        "    with pytest.raises(ValueError): pass\n"
        "def test_that_passes(): pass\n"
    )
    ran = mutants.run_tests([str(path)], mutants.ROOT, 60.0)
    assert ran.code == 1
    assert _names(ran.assertions) == ["test_an_assertion", "test_nothing_was_raised"]
    assert _names(ran.others) == ["test_of_the_fixture", "test_an_error"]


def _names(texts: tuple[str, ...]) -> list[str]:
    return [text.partition("::")[2].partition(":")[0] for text in texts]


def test_code_that_is_not_the_copys_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): assert False\n")
    ran = mutants.run_tests(["test_one.py"], tmp_path, 60.0)
    assert ran.code != 1
    assert ran.assertions == ()


def test_a_choice_by_chance_is_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    table = [_changed(id=str(number)) for number in range(50)]
    twice = [mutants.chosen(table, mutants.parsed(["--random", "10", "--seed", "7"])) for _ in range(2)]
    assert twice[0] == twice[1]
    assert len(twice[0]) == 10
    assert "--seed 7" in capsys.readouterr().out
    mutants.chosen(table, mutants.parsed(["--random", "10"]))
    assert "--seed" in capsys.readouterr().out, "whoever wants the same choice again can say which"


def test_an_id_that_is_not_there_ends_the_run() -> None:
    assert mutants.chosen([A_MUTANT], mutants.parsed(["--only", "lease"])) == [A_MUTANT]
    with pytest.raises(SystemExit, match="no mutant x"):
        mutants.chosen([A_MUTANT], mutants.parsed(["--only", "x"]))
