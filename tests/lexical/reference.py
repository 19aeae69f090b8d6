"""The lexical policy once more, in plain Python, to hold the SQL against."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
RUN = (
    "\u3005\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1780-\u17d3\u17dc-\u17dd"
    "\u1000-\u103f\u1050-\u109f"
)


def pieces(text: str, *, for_note: bool) -> dict[str, int]:
    """The pieces of all runs, each at most 255 times."""
    counted: Counter[str] = Counter()
    for run in re.findall(f"[{RUN}]+", unicodedata.normalize("NFKC", text)):
        counted.update([run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)])
        if for_note and len(run) > 1:
            counted.update(re.findall(f"[{HAN}]", run))
    return {piece: min(count, 255) for piece, count in counted.items()}


def rest(text: str) -> str:
    """What is left for PostgreSQL's parser; in a run of more than 255 characters nothing holds two words together."""
    left = re.sub(f"[{RUN}]+", " ", unicodedata.normalize("NFKC", text))
    return re.sub(r"\S{256,}", lambda run: re.sub(r"[!-/:-@[-`{-~]+", " ", run[0]), left)


def parted(text: str) -> str:
    """What the parser gets a second time: full stop and slash no longer hold two words together."""
    return re.sub(r"(?<=[^\W\d])[./](?=\w)|(?<=\w)[./](?=[^\W\d])", " ", rest(text))


def with_parts(whole: Mapping[str, int], parts: Mapping[str, int], *, for_note: bool) -> dict[str, int]:
    """The words of the whole, and those inside them: in a query they are asked for and count nothing."""
    inside = {word: count if for_note else whole.get(word, 0) for word, count in parts.items()}
    return {**whole, **{word: max(count, whole.get(word, 0)) for word, count in inside.items()}}


@dataclass(frozen=True)
class Document:
    words: Mapping[str, int]
    length: int


class Bm25:
    """Score every document; nothing clever."""

    def __init__(self, documents: Mapping[UUID, Document], *, k1: float = 1.2, b: float = 0.75) -> None:
        self.documents, self.k1, self.b = documents, k1, b
        self.notes = len(documents)
        self.mean = sum(document.length for document in documents.values()) / self.notes
        self.found_in = Counter(word for document in documents.values() for word in document.words)

    def kept(self, query: Sequence[str]) -> list[str]:
        found = sorted(word for word in set(query) if self.found_in[word])
        rare = [word for word in found if not (self.found_in[word] > 1000 and self.found_in[word] > self.notes * 0.5)]
        return rare or found

    def score(self, words: Sequence[str], document: Document) -> float:
        """Add in the order of the words, with the very operations of the statement, so that the last bit agrees."""
        score = 0.0
        for word in words:
            if (tf := document.words.get(word)) is not None:
                idf = math.log(1.0 + (self.notes - self.found_in[word] + 0.5) / (self.found_in[word] + 0.5))
                norm = self.k1 * (1.0 - self.b + self.b * document.length / self.mean)
                score += idf * (tf * (self.k1 + 1.0)) / (tf + norm)
        return score

    def rank(self, query: Sequence[str], top_k: int, min_rank: float = 0.0) -> list[tuple[UUID, float]]:
        words = self.kept(query)
        scored = [
            (note, self.score(words, document))
            for note, document in self.documents.items()
            if any(word in document.words for word in words)
        ]
        admissible = [pair for pair in scored if pair[1] >= min_rank]
        return sorted(admissible, key=lambda pair: (-pair[1], pair[0].int))[:top_k]
