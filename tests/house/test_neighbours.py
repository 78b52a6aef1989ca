"""RM-7: what a docstring says of its neighbours is so; each way in which it is not is seen to be found."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import neighbours

READER = '''"""Reads. Neighbours: {}."""

from gatelift_wire.keys import Key

WORDS = Key.words


def read() -> None: ...
'''


def found(tmp_path: Path, named: str) -> list[tuple[str, str]]:
    folder = tmp_path / "protos/gatelift_wire"
    folder.mkdir(parents=True)
    (folder / "keys.py").write_text("class Key: ...\n")
    (folder / "words.py").write_text("")
    (folder / "strangers.py").write_text("")
    (folder / "reader.py").write_text(READER.format(named))
    return neighbours.strangers(neighbours.modules(tmp_path), tmp_path)


def test_rm_7_whoever_is_called_a_neighbour_is_one() -> None:
    known = neighbours.modules()
    assert neighbours.strangers(known) == []
    assert {one: module.claims for one, module in known.items() if module.claims} == {}
    assert sum(1 for each in known.values() if each.neighbours) >= 100


@pytest.mark.parametrize("named", ["`keys` (makes them)", "`keys.Key`", "`words`, whose it is", "`read` is called"])
def test_rm_7_what_is_imported_named_or_defined_is_a_neighbour(tmp_path: Path, named: str) -> None:
    assert found(tmp_path, named) == []


@pytest.mark.parametrize("named", ["strangers", "strangers.py", "nobody", "strangers.Key"])
def test_rm_7_a_file_that_nobody_meets_or_that_is_not_there_is_no_neighbour(tmp_path: Path, named: str) -> None:
    assert found(tmp_path, f"`keys`, `{named}` (beside it)") == [("gatelift_wire.reader", named)]


@pytest.mark.parametrize("word", ["Neighbour", "Neighbours"])
def test_rm_7_one_neighbour_is_read_as_many_are(word: str) -> None:
    text = f'"""Reads.\n\n{word}: `keys` (makes them), `strangers`."""\n'
    assert neighbours.read(text).neighbours == ("keys", "strangers")


@pytest.mark.parametrize(
    "said",
    ["`engine` and `cycle` are its only users.", "Only the codec and the gRPC adapters import it.", "Its only caller."],
)
def test_rm_7_that_there_are_no_others_is_not_said_where_nothing_holds_it(said: str) -> None:
    assert neighbours.read(f'class A:\n    """{said}"""\n').claims
    assert not neighbours.read('"""Only what is read it keeps. Users: `keys`."""').claims
