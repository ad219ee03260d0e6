"""The tables of behaviours: every test that they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NAMED = re.compile(r"`([\w./]+\.py)::(\w+)`")


def missing(page: Path, folder: Path) -> list[str]:
    """Of the tests that a page names as `file::test`, those that are not there."""
    found = NAMED.findall(page.read_text())
    assert len(found) > 10, f"{page} names hardly any test"
    return [
        f"{file}::{test}"
        for file, test in found
        if not (folder / file).is_file()
        or not re.search(rf"^\s*def {test}\(", (folder / file).read_text(), flags=re.M)
    ]


@pytest.mark.parametrize(
    ("page", "folder"), [(HERE / "README.md", HERE), (ROOT / "docs" / "differences.md", ROOT)]
)
def test_every_test_that_is_named_exists(page, folder):
    assert missing(page, folder) == []


def test_every_difference_names_its_test():
    """Each row of the table of differences ends with a test, or refers to the row above."""
    rows = [
        line
        for line in (ROOT / "docs" / "differences.md").read_text().splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| what happens", "| | for"))
    ]
    assert len(rows) > 15
    for row in rows:
        last = row.rstrip("| ").rsplit(" | ", 1)[-1]
        assert NAMED.search(last) or last.startswith("the same, "), row
