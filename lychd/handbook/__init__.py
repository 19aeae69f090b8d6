"""The small operations handbook that the demonstration loads: notes, how they ended, and questions about them."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, TypeAlias

Admitter: TypeAlias = Literal["incident-agent", "release-agent", "support-agent"]
Curator: TypeAlias = Literal["lead-curator", "oncall-curator"]
EndState: TypeAlias = Literal["candidate", "promoted", "archived", "revoked"]
Reason: TypeAlias = Literal["duplicate", "outdated", "wrong", "unsafe", "personal_data", "out_of_scope", "other"]


@dataclass(frozen=True, slots=True)
class HandbookNote:
    """One revision, and the state in which the demonstration leaves it."""

    source_key: str
    source_revision: str
    text: str
    asserted_origin: str
    by: Admitter
    end_state: EndState
    curator: Curator | None
    reason: Reason | None

    @property
    def archived_by_hand(self) -> bool:
        """Archived for a reason; without one, the next promoted revision archives it."""
        return self.end_state == "archived" and self.reason is not None


@dataclass(frozen=True, slots=True)
class SourceRevision:
    """Which note is meant."""

    source_key: str
    source_revision: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the source whose promoted note should come first."""

    question: str
    source_key: str


@dataclass(frozen=True, slots=True)
class Story:
    """A question that one candidate alone can answer, and five that are answered already."""

    question: str
    candidate: SourceRevision
    more_questions: tuple[Question, ...]


def notes() -> tuple[HandbookNote, ...]:
    """Every revision, in the order in which it is admitted."""
    # Not splitlines(): it would also cut at separators that a note may hold.
    lines = _read("notes.jsonl").rstrip("\n").split("\n")
    return tuple(HandbookNote(**json.loads(line)) for line in lines)


def story() -> Story:
    """The questions of the demonstration."""
    told = json.loads(_read("story.json"))
    return Story(
        question=told["question"],
        candidate=SourceRevision(**told["candidate"]),
        more_questions=tuple(Question(**asked) for asked in told["more_questions"]),
    )


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
