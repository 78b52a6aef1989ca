"""docs/keps.md: each sentence of a document names what shows it, and what shows an id is run and listed by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import acceptance
from scripts.acceptance import NOT_RUN, PASSED, Shows

HEAD = "| the document says | here | shown by |\n|---|---|---|\n"
ROWS = "\n\n| RE-3 | a scenario | so | `tests/test_one.py` |\n"


@pytest.mark.parametrize(
    ("last", "said"),
    [("RE-3", []), ("RE-3, RE-4", ["RE-4 has no row here"]), ("later", ["no id has no row here"])],
)
def test_a_sentence_names_ids_that_have_a_row(last: str, said: list[str]) -> None:
    found = acceptance.unshown(f"{HEAD}| a sentence | so | {last} |{ROWS}")
    assert [line.partition(": ")[2] for line in found] == said


def test_what_shows_an_id_is_found_by_name_docstring_and_parameter(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(
        "import pytest\n\n@pytest.mark.parametrize('x', [pytest.param(1, id='RE-4 by parameter')])\n"
        'def test_re_3_by_name(x):\n    """And RP-001."""\n\ndef test_other():\n    pass\n'
    )
    [shows] = acceptance.functions(file)
    assert shows.name == "test_re_3_by_name"
    assert (sorted(shows.always), sorted(shows.by_parameter)) == (["RE-3", "RP-001"], ["RE-4"])


REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_one" name="test_re_3[RE-4 so]"/>
<testcase classname="tests.test_one" name="test_re_3[other]"><failure/></testcase>
<testcase classname="tests.test_two" name="test_elsewhere"/>
</testsuite></testsuites>"""


def test_each_id_is_listed_with_what_its_cases_came_to(tmp_path: Path) -> None:
    tests = [
        Shows("tests/test_one.py", "test_re_3", frozenset({"RE-3"}), frozenset({"RE-4"})),
        Shows("tests/e2e/test_two.py", "test_re_3", frozenset({"RE-3"}), frozenset()),
    ]
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    lines = acceptance.listed(["RE-3", "RE-4"], tests, acceptance.results(report, tests))
    assert [line.split()[:2] for line in lines] == [["RE-3", "failed"], ["RE-3", NOT_RUN.split()[0]], ["RE-4", PASSED]]
