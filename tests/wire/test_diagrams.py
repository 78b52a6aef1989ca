import pytest
from scripts import diagrams


@pytest.mark.parametrize("diagram", diagrams.DIAGRAMS, ids=lambda diagram: diagram.name)
def test_the_diagram_in_the_document_is_that_of_the_table(diagram: diagrams.Diagram) -> None:
    text = (diagrams.ROOT / diagram.document).read_text()
    assert diagrams.drawn(diagram, text) == text, "run: python scripts/diagrams.py"


def test_a_document_without_markers_is_named() -> None:
    with pytest.raises(ValueError, match=r"docs/wire\.md: needs the lines"):
        diagrams.drawn(diagrams.DIAGRAMS[0], "nothing here")
