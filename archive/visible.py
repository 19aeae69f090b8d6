"""Make a text safe to judge: what does not show, or shows as something else, becomes a mark that does.

Nothing is rendered: markup, templates and terminal sequences stay the characters that they are.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_SHORT: Final = {
    0x00AD: "SHY",
    0x034F: "CGJ",
    0x061C: "ALM",
    0x200B: "ZWSP",
    0x200C: "ZWNJ",
    0x200D: "ZWJ",
    0x200E: "LRM",
    0x200F: "RLM",
    0x2028: "LSEP",
    0x2029: "PSEP",
    0x202A: "LRE",
    0x202B: "RLE",
    0x202C: "PDF",
    0x202D: "LRO",
    0x202E: "RLO",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xFEFF: "BOM",
}
# Letters and marks by their category, and still nothing to see.
_BLANK: Final = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2028, 0x2029, 0x2800, 0x3164, 0xFFA0}
    | set(range(0x180B, 0x1810))
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Co", "Cn", "Cs"})
_WORD: Final = re.compile(r"[^\W\d_]+")
_SCRIPTS: Final = ("LATIN", "CYRILLIC", "GREEK")


class Mark(StrEnum):
    """Why a piece of text is marked."""

    HIDDEN = "hidden"
    LOOKALIKE = "lookalike"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text as it is, or one marked character with the name that explains it."""

    text: str = field(repr=False)
    mark: Mark | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Visible:
    """A whole text in pieces, and how many characters of it are marked."""

    pieces: tuple[Piece, ...] = field(repr=False)
    hidden: int
    lookalikes: int


def visible(text: str) -> Visible:
    """Cut a text at every character that a reader would miss or mistake."""
    pieces = tuple(_pieces(text))
    return Visible(
        pieces,
        hidden=sum(piece.mark is Mark.HIDDEN for piece in pieces),
        lookalikes=sum(piece.mark is Mark.LOOKALIKE for piece in pieces),
    )


def _pieces(text: str) -> Iterator[Piece]:
    lookalikes = _lookalikes(text)
    start = 0
    for place, letter in enumerate(text):
        piece = _marked(text, place, letter, lookalikes)
        if piece is None:
            continue
        if place > start:
            yield Piece(text[start:place])
        yield piece
        start = place + 1
    if start < len(text):
        yield Piece(text[start:])


def _marked(text: str, place: int, letter: str, lookalikes: frozenset[int]) -> Piece | None:
    if place in lookalikes:
        return Piece(letter, Mark.LOOKALIKE, _explained(letter))
    if letter in "\n\t" or not _hides(letter):
        return None
    if letter == "\r" and text[place + 1 : place + 2] == "\n":
        return None
    return Piece(_sign(letter), Mark.HIDDEN, _explained(letter))


def _hides(letter: str) -> bool:
    return ord(letter) in _BLANK or unicodedata.category(letter) in _HIDDEN_CATEGORIES


def _sign(letter: str) -> str:
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    return _SHORT.get(code, f"{code:04X}")


def _explained(letter: str) -> str:
    return f"U+{ord(letter):04X} {unicodedata.name(letter, 'control character')}"


def _lookalikes(text: str) -> frozenset[int]:
    """Find the letters of the rarer script in each word that mixes Latin, Cyrillic and Greek."""
    if text.isascii():
        return frozenset()
    found: set[int] = set()
    for word in _WORD.finditer(text):
        if word[0].isascii():
            continue
        places: dict[str, list[int]] = {}
        for place, letter in enumerate(word[0], word.start()):
            script = unicodedata.name(letter, "").partition(" ")[0]
            if script in _SCRIPTS:
                places.setdefault(script, []).append(place)
        if len(places) > 1:
            most = max(places, key=lambda script: (len(places[script]), script == "LATIN"))
            found.update(place for script, held in places.items() if script != most for place in held)
    return frozenset(found)
