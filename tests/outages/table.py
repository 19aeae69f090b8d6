"""The table "What an outage looks like" of docs/operations.md: what stands there is what real processes said."""

import re
from typing import Final

from lychd.environment import CHECKOUT

COLUMNS: Final = ("log", "callers", "doctor")
_BEGIN: Final = "## What an outage looks like"


def rows() -> dict[str, dict[str, str]]:
    """Each row by what happened; its cells by column."""
    text = (CHECKOUT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.partition(_BEGIN)[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: dict(zip(COLUMNS, rest, strict=True)) for name, *rest in cells}


def sentences(happened: str, column: str) -> list[str]:
    """What the table quotes in one cell; commands are no sentences."""
    quoted = re.findall(r"`([^`]+)`", rows()[happened][column])
    return [one for one in quoted if not one.startswith("lychd ")]


def missing(happened: str, column: str, said: str) -> list[str]:
    """The sentences of a cell that are not in what was said."""
    return [one for one in sentences(happened, column) if not re.search(pattern(one), said)]


def pattern(sentence: str) -> str:
    """A sentence of the table as an expression: `…` stands for whatever stood there."""
    return ".*?".join(re.escape(part) for part in sentence.split("…"))
