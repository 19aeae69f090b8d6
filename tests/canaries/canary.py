"""Words that exist nowhere else, and every form in which one of them could come to light again."""

import base64
import json
import secrets
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

_LETTERS = string.ascii_lowercase


def _word(length: int = 24) -> str:
    # Letters alone, so that every lexer takes it for one word.
    return "zq" + "".join(secrets.choice(_LETTERS) for _ in range(length))


@dataclass(frozen=True)
class Canary:
    """A secret and the pieces of it that give it away, each unique on earth."""

    kind: str
    text: str
    pieces: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Canary({self.kind})"

    @classmethod
    def sentence(cls, kind: str) -> "Canary":
        """A sentence with one plain word and one that every escape writes in its own way."""
        plain, accented = _word(), _word() + "é"
        return cls(kind, f'The {plain} keeps "{accented}" at 100 % under <glass> & rain.', (plain, accented))

    @classmethod
    def reference(cls, kind: str) -> "Canary":
        """Words in the form of a reference, as an origin takes them."""
        word = _word()
        return cls(kind, f"letters/{word}/said-in-hyphens", (word,))

    @classmethod
    def password(cls, kind: str) -> "Canary":
        word = _word()
        return cls(kind, word, (word,))

    @classmethod
    def of_secret(cls, kind: str, secret: str) -> "Canary":
        """A secret that somebody else made; what is shown of it on purpose, its beginning, is no piece."""
        return cls(kind, secret, (secret[-24:],))

    def forms(self) -> dict[str, bytes]:
        """What to look for: by name, as bytes. `raw` and `hex` are compared without regard to case."""
        return {
            f"{form} {number}": pattern
            for number, piece in enumerate(self.pieces)
            for form, pattern in _forms(piece).items()
        }

    def found_in(self, hay: "str | bytes") -> list[str]:
        """The forms in which this canary is in some text, by name."""
        return [] if not hay else list(search([self], hay).get(self, ()))


def _forms(piece: str) -> dict[str, bytes]:
    said = piece.encode("utf-8")
    forms = {"raw": said.lower(), "hex": said.hex().encode()}
    for offset in range(3):
        forms[f"base64+{offset}"] = _inside_base64(said, offset)
    if not piece.isascii():
        forms["json"] = json.dumps(piece)[1:-1].encode()
        forms["url"] = quote(piece).encode()
        forms["repr of bytes"] = repr(said)[2:-1].encode()
        forms["octal"] = b"".join(b"\\%03o" % byte if byte > 127 else bytes([byte]) for byte in said)
        forms["latin-1"] = piece.encode("latin-1")
        forms["html"] = piece.encode("ascii", "xmlcharrefreplace")
    return forms


def _inside_base64(said: bytes, offset: int) -> bytes:
    """The letters that base64 writes for these bytes whatever stands before and after them."""
    whole = base64.b64encode(b"\0" * offset + said + b"\0" * 3)
    first = -(-offset * 8 // 6)
    last = (offset + len(said)) * 8 // 6
    return whole[first:last]


_FOLDED = ("raw", "hex")


def search(canaries: Iterable[Canary], hay: "str | bytes") -> Mapping[Canary, tuple[str, ...]]:
    """Which canaries are in some text, and in which forms."""
    exact = hay.encode("utf-8", "surrogateescape") if isinstance(hay, str) else hay
    folded = exact.lower()
    # The alphabet for addresses writes two letters otherwise; a piece may have either.
    twice = exact.replace(b"-", b"+").replace(b"_", b"/")
    found = {}
    for canary in canaries:
        forms = tuple(
            name
            for name, pattern in canary.forms().items()
            if pattern in (folded if name.startswith(_FOLDED) else exact)
            or (name.startswith("base64") and pattern in twice)
        )
        if forms:
            found[canary] = forms
    return found
