"""RM-1: a package that grows out of its rooms is noticed; each limit is seen to fail on a package made for that."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import rooms
from scripts.rooms import House

LAYERS = [{"door"}, {"deciding"}, {"knowing", "asking"}, {"values"}]
GOOD = {
    "door.py": "from house.deciding import rounds\n",
    "deciding/rounds.py": "from house.knowing.state import State\n",
    "knowing/state.py": "from house import values\n",
    "asking/answers.py": "import house.values\n",
    "values.py": "AMOUNT = 1\n",
}
HOUSE = House("house", "house", imports_max=4, rooms_min=5, share_max=0.3)


def found(tmp_path: Path, changed: dict[str, str], house: House = HOUSE) -> list[str]:
    """Return what is wrong with the good package after these files were changed; `__` stands for a folder."""
    for name, text in {**GOOD, **{f"{key.replace('__', '/')}.py": text for key, text in changed.items()}}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return rooms.problems(house, rooms.measure(tmp_path, "house"), LAYERS)


def test_rm_1_a_package_within_its_limits_has_no_problem(tmp_path: Path) -> None:
    assert found(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        pytest.param({"values": "from house.knowing import state\n"}, "does not stand below it", id="upward"),
        pytest.param({"asking__answers": "import house.knowing.state\n"}, "does not stand below it", id="beside"),
        pytest.param({"values": "def f():\n    import house.door\n"}, "a circle of rooms", id="in a function"),
        pytest.param({"attic": ""}, "room attic has no place", id="homeless"),
        pytest.param({"values": "A = 1\n" * 9}, "room values has 9 of 13 lines", id="too large"),
        pytest.param({"door": "import house.deciding\nimport house.values\n"}, "5 imports between rooms", id="many"),
    ],
)
def test_rm_1_what_is_beyond_the_limits_is_named(tmp_path: Path, changed: dict[str, str], problem: str) -> None:
    assert any(problem in each for each in found(tmp_path, changed))


def test_rm_1_too_few_rooms_are_named(tmp_path: Path) -> None:
    house = House("house", "house", imports_max=4, rooms_min=6, share_max=0.3)
    assert found(tmp_path, {}, house) == ["house: 5 rooms, at least 6 wanted"]


def test_rm_1_each_room_of_each_house_has_a_docstring_that_says_what_it_is() -> None:
    for house in rooms.HOUSES:
        folder = rooms.ROOT / house.folder
        for path in sorted(folder.glob("*/__init__.py")):
            assert path.read_text().startswith('"""'), path
        assert rooms.layers_of(house.package), f"{house.package} has layers in .importlinter"
