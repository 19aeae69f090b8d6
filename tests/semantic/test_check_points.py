"""Each act of derivation and recall by meaning asks about its permission at every point, and stops where it is gone.

Before the hold and under it nothing was written; what was committed before a later question stays (R-L-031..035, 198).
"""

from collections.abc import Callable
from typing import Any

import pytest

from archive import authority
from archive.authority import Point
from archive.refusals import AuthorityRefused
from semantic.models import Derivation
from semantic.operations.attempts import Attempt, run_attempt
from semantic.operations.generations import discover, register, retire
from semantic.operations.preparation import prepare, prepare_many
from semantic.operations.request import request
from semantic.operations.resolution import resolve
from tests import cast
from tests.scenarios.counting import Counts
from tests.semantic import acts
from tests.semantic.conftest import GENERATION

A0, A1, A2, AX = Point.A0, Point.A1, Point.A2, Point.AX
NOTHING: frozenset[str] = frozenset()
ROW = frozenset({"semantic_derivation"})
RECEIPT = frozenset({"archive_recall"})
VECTOR = ROW | {"semantic_scan", "semantic_coverage"}


class Ground:
    """A namespace with one note embedded, one prepared, one neither, and a receipt of the first."""

    def __init__(self, garden: cast.Garden) -> None:
        alice, otto, self.dora, self.bob = (garden.caller(name) for name in ("alice", "otto", "dora", "bob"))
        self.otto = otto
        done, begun, self.note = (
            cast.promoted(alice, f"About {word}.", source=word) for word in ("sun", "rain", "fog")
        )
        register(otto)
        acts.derived(self.dora, done)
        acts.asked(self.bob, request_id="earlier")
        self.row = acts.prepared(self.dora, begun)

    def attempt(self) -> Attempt:
        """The prepared one, or what became of it, as somebody who has looked asks for it."""
        row = Derivation.objects.only("row_version", "state").get(id=self.row.id)
        return Attempt(row.id, row.row_version, retry=row.state == "failed")


# What is done, the points at which it asks in order, and which tables differ when it is refused there.
ACTS: dict[str, tuple[Callable[[Ground], Any], list[tuple[Point, frozenset[str]]]]] = {
    "discover": (lambda at: discover(at.otto), [(A0, NOTHING), (A2, NOTHING)]),
    "register": (lambda at: register(at.otto), [(A0, NOTHING), (A1, NOTHING), (A2, NOTHING)]),
    "prepare": (
        lambda at: prepare(at.dora, at.note.id),
        [(A0, NOTHING), (A1, NOTHING), (A2, ROW)],
    ),
    "request": (lambda at: request(at.dora, at.attempt()), [(A0, NOTHING), (A2, NOTHING)]),
    "attempt": (
        lambda at: run_attempt(at.dora, at.attempt()),
        [(A0, NOTHING), (A1, NOTHING), (AX, ROW), (AX, ROW), (A1, ROW), (A2, VECTOR)],
    ),
    "recall": (
        lambda at: acts.asked(at.bob, request_id="new"),
        [(A0, NOTHING), (A1, NOTHING), (AX, NOTHING), (AX, NOTHING), (A1, NOTHING), (A2, RECEIPT)],
    ),
    "recall replayed": (
        lambda at: acts.asked(at.bob, request_id="earlier"),
        [(A0, NOTHING), (A1, NOTHING), (A2, NOTHING)],
    ),
    "resolve": (lambda at: resolve(at.bob, "earlier"), [(A0, NOTHING), (A1, NOTHING), (A2, NOTHING)]),
    "retire": (
        lambda at: retire(at.otto, GENERATION),
        [(A0, NOTHING), (A1, NOTHING), (A2, VECTOR | {"semantic_generation"})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTS)
def test_a_permission_that_ends_is_missed_at_the_next_point(meaning, owner, scripted, monkeypatch, name):
    act, points = ACTS[name]
    at = Ground(meaning)
    asked = []
    decide = authority.decide

    def told(questions: Any, point: Point) -> list[bool]:
        if questions:
            asked.append(point)
        return decide(questions, point)

    monkeypatch.setattr(authority, "decide", told)
    for yes, (_, written) in enumerate(points):
        scripted.calls, scripted.script = 0, [True] * yes + [False]
        counts, asked[:] = Counts(owner), []

        with pytest.raises(AuthorityRefused):
            act(at)

        assert asked == [point for point, _ in points[: yes + 1]]
        now = counts.look()
        assert {table for table in counts.tables if now[table] != counts.last[table]} == written, f"refused at {yes}"


def test_in_a_batch_each_note_has_its_own_answer(meaning, alice, otto, dora, settings):
    """One question of several that is answered no refuses its own note alone."""
    notes = [cast.promoted(alice, f"About {word}.", source=word) for word in ("sun", "rain")]
    register(otto)
    settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": "tests.semantic.test_check_points.FirstOnly"}

    answers = prepare_many(dora, [note.id for note in notes])

    assert answers[0].given().created
    assert isinstance(answers[1].refusal, AuthorityRefused)
    assert [row.note_id for row in Derivation.objects.all()] == [notes[0].id]


class FirstOnly:
    """Says yes to the first of several questions."""

    def decide_many(self, questions: Any) -> list[bool]:
        return [place == 0 for place in range(len(questions))]
