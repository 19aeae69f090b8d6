"""The ground every schedule starts from, and the parts that actors play on it.

Each schedule has a namespace of its own: nothing in one depends on rows of another, so a fresh key is a fresh database
and costs no truncation. A neighbour namespace with the same keys and identities stands beside it and must not change.

A planted world has roses/1 promoted, roses/2 and roses/3 candidates, and the intake `taken` of roses/1; a recalled one
has bob's receipt `earlier` of roses/1 besides.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import psycopg
from django.test import override_settings

from archive import bindings, gates
from archive.authority import Action, AuthorityQuestion, Caller
from archive.lifecycle import Reason, State
from archive.models import Note, Recall
from archive.operations import host
from archive.operations.desk import Queue, desk
from archive.operations.flag import flag
from archive.operations.intake import intake, intake_many
from archive.operations.migration import migrate
from archive.operations.rebuild import rebuild_lexical
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import archive, promote, revoke, transition_many
from archive.records import NoteRecord
from archive.refusals import Refusal
from archive.requests import Intake, LexicalRecall, Transition
from inspection import discovery, reads
from inspection.cursors import PageRequest
from tests import cast
from tests.racing import invariants

NEIGHBOUR: Final = "neighbour"
TEMPLATE: Final = "template"
TEXTS: Final = {"1": "Roses want morning sun.", "2": "Roses want evening sun.", "3": "Roses want no sun at all."}

_numbers = itertools.count(1)


@dataclass
class World:
    """One namespace, those who act in it, and the notes it began with."""

    key: str
    owner: "psycopg.Connection[Any]"
    notes: dict[str, NoteRecord] = field(default_factory=dict)
    doors: bool = False
    """Whether those whom a change of binding may overtake stop at the door too."""

    def caller(self, subject: str) -> Caller:
        """Meet the namespace at its door, as the binding is then."""
        caller = Caller.in_namespace(subject, self.key)
        if self.doors and subject != "otto":
            gates.gate("door")
        return caller

    def ledger(self) -> invariants.Ledger:
        """Everything retained here now."""
        return invariants.read(self.owner, self.key)

    def authority(self) -> frozenset[tuple[str, str, str]]:
        """Who may do what here now, under which policy."""
        return frozenset(
            self.owner.execute(
                "SELECT subject, action, policy_revision FROM lychd_grant WHERE namespace_key = %s"
                " AND revoked_at IS NULL",
                [self.key],
                prepare=True,
            ).fetchall()
        )

    def ask(self, note: str, state: State, **more: Any) -> Transition:
        """The decision to bring a note of the beginning into a state, on the version it had then."""
        return cast.step(self.notes[note], state, **more)


def prepare(owner: "psycopg.Connection[Any]") -> None:
    """Make the namespace whose configuration the worlds copy, and the neighbour whom nothing may touch."""
    cast.plant(TEMPLATE)
    cast.plant(NEIGHBOUR)
    neighbour = World(NEIGHBOUR, owner)
    _furnish(neighbour)
    recall(neighbour.caller("bob"), LexicalRecall("earlier", "roses sun"))
    revoke(neighbour.caller("alice"), neighbour.ask("3", State.REVOKED))
    flag(neighbour.caller("bob"), neighbour.notes["1"].id, Reason.OTHER)


def bare(owner: "psycopg.Connection[Any]") -> World:
    """A namespace that is configured, and in which nothing was ever taken in."""
    key = f"world-{next(_numbers)}"
    owner.execute(
        "INSERT INTO lychd_binding (namespace_key, owner, policy_revision, text_configuration, second_person,"
        " configured_by, configured_at) SELECT %s, owner, policy_revision, text_configuration, second_person,"
        " configured_by, configured_at FROM lychd_binding WHERE namespace_key = %s",
        [key, TEMPLATE],
        prepare=True,
    )
    owner.execute(
        "INSERT INTO lychd_grant (subject, namespace_key, owner, purpose, policy_revision, action, granted_by)"
        " SELECT subject, %s, owner, purpose, policy_revision, action, granted_by FROM lychd_grant"
        " WHERE namespace_key = %s",
        [key, TEMPLATE],
        prepare=True,
    )
    return World(key, owner)


def planted(owner: "psycopg.Connection[Any]") -> World:
    """The world described above."""
    world = bare(owner)
    _furnish(world)
    return world


class Open:
    """Allows everything: the beginning of a world is no act that anybody asks about, and authority costs time."""

    def decide_many(self, questions: Sequence[AuthorityQuestion]) -> Sequence[bool]:
        return [True] * len(questions)


def _furnish(world: World) -> None:
    with override_settings(LYCHD_ARCHIVE={**bindings.require_profile(), "authorizer": "tests.racing.world.Open"}):
        _write(world)


def _write(world: World) -> None:
    alice = world.caller("alice")
    taken = [
        Intake("taken" if revision == "1" else f"taken-{revision}", "roses", revision, text)
        for revision, text in TEXTS.items()
    ]
    for answer in intake_many(alice, taken):
        note = answer.given().note
        world.notes[note.source_revision] = note
    world.notes["1"] = promote(alice, world.ask("1", State.PROMOTED)).note


def recalled(owner: "psycopg.Connection[Any]") -> World:
    """The same after bob has recalled roses/1 once."""
    world = planted(owner)
    recall(world.caller("bob"), LexicalRecall("earlier", "roses sun"))
    return world


def rebound(owner: "psycopg.Connection[Any]") -> World:
    """The planted world, configured under a second policy that it has still to be migrated to."""
    world = planted(owner)
    binding = host.configure_namespace(world.key, owner=cast.OWNER, policy_revision="policy-2", by="host:tests")
    host.grant("otto", binding, [Action.MIGRATE_BINDING], by="host:tests")
    return world


@dataclass(frozen=True)
class Part:
    """What one actor does: its act, the gates it passes alone, how a repetition is answered, what ground it needs."""

    name: str
    act: Callable[[World], str]
    gates: tuple[str, ...]
    again: str | None = None
    ground: Callable[["psycopg.Connection[Any]"], World] = planted
    reads: bool = False
    """Whether it leaves every row as it was (I19)."""
    ends: tuple[str, Action] | None = None
    """The subject and the permission that it takes back, if it is a withdrawal."""

    def __str__(self) -> str:
        return self.name

    def play(self, world: World) -> str:
        """Perform the act and put its ending into one word; whatever is no refusal stays an error."""
        try:
            return self.act(world)
        except Refusal as refusal:
            return _told(refusal)


def _told(refusal: Refusal) -> str:
    """The code of a refusal, which holds back whatever was read before it (I14)."""
    assert not any(text in f"{refusal} {vars(refusal)}" for text in TEXTS.values()), f"I14: {refusal.code} tells a text"
    return refusal.code


def _intake(request: str, source: str, revision: str, text: str, world: World) -> str:
    admitted = intake(world.caller("alice"), Intake(request, source, revision, text))
    return f"{admitted.outcome} {admitted.note.state} v{admitted.note.lifecycle_version}"


def _intake_batch(world: World) -> str:
    answers = intake_many(
        world.caller("alice"),
        [Intake("new", "tulips", "1", "Tulips want sand."), Intake("batched", "lilies", "1", "Lilies want shade.")],
    )
    return " ".join(str(one.result.outcome) if one.result else one.refusal.code for one in answers if one)  # type: ignore[union-attr]


def _move(operation: Callable[[Caller, Transition], Any], note: str, state: State, world: World) -> str:
    moved = operation(world.caller("alice"), world.ask(note, state))
    after = f" after {moved.superseded.source_revision}" if moved.superseded else ""
    return f"{moved.note.state} v{moved.note.lifecycle_version}{after}"


def _move_new(operation: Callable[[Caller, Transition], Any], state: State, world: World) -> str:
    """Decide about tulips/1 as it is found, if somebody has taken it in by then."""
    found = Note.objects.filter(namespace__key=world.key, source__source_key="tulips", source_revision="1")
    note = found.values_list("id", "lifecycle_version").first()
    if note is None:
        return "nothing there"
    gates.gate("found")
    moved = operation(world.caller("alice"), Transition(note[0], state, note[1]))
    return f"{moved.note.state} v{moved.note.lifecycle_version}"


def _move_batch(world: World) -> str:
    answers = transition_many(world.caller("alice"), [world.ask("2", State.PROMOTED), world.ask("3", State.REVOKED)])
    return " ".join(one.result.note.state if one.result else one.refusal.code for one in answers if one)  # type: ignore[union-attr]


def _promote_batch(world: World) -> str:
    decisions = [world.ask("2", State.PROMOTED), world.ask("3", State.PROMOTED)]
    answers = transition_many(world.caller("alice"), decisions)
    return " ".join(one.result.note.state if one.result else one.refusal.code for one in answers if one)  # type: ignore[union-attr]


def _recall(request: str, world: World) -> str:
    recalled = recall(world.caller("bob"), LexicalRecall(request, "roses sun"))
    chosen = [f"{one['source_key']}/{one['source_revision']}" for one in recalled.receipt["selected"]]
    return " ".join([recalled.outcome, *chosen])


def _resolve(request: str, world: World) -> str:
    resolved = resolve(world.caller("bob"), request)
    receipt = Recall.objects.get(namespace__key=world.key, request_id=request).receipt
    chosen = [(one["source_key"], one["source_revision"]) for one in receipt["selected"]]
    # All of it or nothing, and the very texts that were promoted.
    assert [(one.source_key, one.source_revision) for one in resolved.sources] == chosen, "I8: not the whole receipt"
    assert all(one.text == TEXTS[one.source_revision] for one in resolved.sources), "I8: another text"
    return " ".join(["resolved", *(f"{source}/{revision}" for source, revision in chosen)])


def _review(world: World) -> str:
    reviewed = review(world.caller("alice"), world.notes["2"].id)
    assert reviewed.text == TEXTS["2"]
    return f"reviewed beside {reviewed.promoted.source_revision if reviewed.promoted else 'nothing'}"


def _desk(world: World) -> str:
    seen = desk(world.caller("alice"), Queue(), at=world.notes["2"].id)
    if seen.reviewed is None:
        return "nothing waits"
    return f"{seen.reviewed.note.source_revision} waits beside {'one' if seen.reviewed.promoted else 'nothing'}"


def _flag(world: World) -> str:
    flagged = flag(world.caller("bob"), world.notes["1"].id, Reason.OUTDATED)
    return f"flagged v{flagged.lifecycle_version}{' again' if flagged.repeated else ''}"


def _list(world: World) -> str:
    return f"listed {len(reads.list_notes(world.caller('ivy'), PageRequest()).items)}"


def _discover(world: World) -> str:
    return f"discovered {len(discovery.configuration('otto', world.key)['bindings'])}"


def _migrate(world: World, **configured: Any) -> str:
    fields = {"owner": cast.OWNER, "policy_revision": cast.POLICY, **configured}
    binding = host.configure_namespace(world.key, by="host:tests", **fields)
    host.grant("otto", binding, [Action.MIGRATE_BINDING], by="host:tests")
    gates.gate("configured")
    migrated = migrate(world.caller("otto"), reason="the policy moved on", carry_grants=True)
    return f"migrated{', rebuild needed' if migrated.rebuild_needed else ''}"


def _migrate_at_last(world: World, *, carry_grants: bool = False) -> str:
    done = migrate(world.caller("otto"), reason="the policy moved on", carry_grants=carry_grants)
    return "migrated" if done.migration_id else "nothing to do"


def _rebuild(world: World) -> str:
    return f"rebuilt {rebuild_lexical(world.key).notes}"


def _withdraw(subject: str, action: Action, world: World) -> str:
    return f"withdrew {host.withdraw(subject, world.key, [action])}"


def _second_person(world: World) -> str:
    host.configure_namespace(
        world.key, owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests", second_person=True
    )
    return "asks for a second person"


def held(action: str, *looked: str) -> tuple[str, ...]:
    """The gates of an operation with one hold."""
    return ("start", f"{action}.A1", *looked, "commit", f"{action}.A2")


_INTAKE: Final = held("intake", "intake.looked")

INTAKE: Final = Part("intake", partial(_intake, "new", "tulips", "1", "Tulips want sand."), _INTAKE, "replayed")
INTAKE_OTHER: Final = Part(
    "intake of other bytes", partial(_intake, "other", "tulips", "1", "Tulips want clay."), _INTAKE, "replayed"
)
INTAKE_ALIKE: Final = Part(
    "intake by another request", partial(_intake, "alike", "tulips", "1", "Tulips want sand."), _INTAKE, "replayed"
)
INTAKE_REUSED: Final = Part(
    "intake that reuses the request", partial(_intake, "new", "lilies", "1", "Lilies want shade."), _INTAKE, "replayed"
)
INTAKE_REPLAY: Final = Part(
    "intake replayed", partial(_intake, "taken", "roses", "1", TEXTS["1"]), _INTAKE, "replayed", reads=True
)
INTAKE_CONFLICT: Final = Part(
    "intake in conflict",
    partial(_intake, "taken", "roses", "1", "Roses want clay."),
    ("start", *_INTAKE[1:3]),
    reads=True,
)
INTAKE_AGAIN: Final = Part(
    "intake of what is revoked", partial(_intake, "again", "roses", "2", TEXTS["2"]), _INTAKE, "replayed"
)
INTAKE_BATCH: Final = Part("intake of a batch", _intake_batch, _INTAKE, "replayed replayed")
PROMOTE_2: Final = Part("promote roses/2", partial(_move, promote, "2", State.PROMOTED), held("promote"))
PROMOTE_3: Final = Part("promote roses/3", partial(_move, promote, "3", State.PROMOTED), held("promote"))
ARCHIVE_1: Final = Part("archive roses/1", partial(_move, archive, "1", State.ARCHIVED), held("archive"))
REVOKE_1: Final = Part("revoke roses/1", partial(_move, revoke, "1", State.REVOKED), held("revoke"))
REVOKE_2: Final = Part("revoke roses/2", partial(_move, revoke, "2", State.REVOKED), held("revoke"))
PROMOTE_NEW: Final = Part("promote tulips/1", partial(_move_new, promote, State.PROMOTED), ("start",))
ARCHIVE_NEW: Final = Part("archive tulips/1", partial(_move_new, archive, State.ARCHIVED), ("start",))
REVOKE_NEW: Final = Part("revoke tulips/1", partial(_move_new, revoke, State.REVOKED), ("start",))
MOVE_BATCH: Final = Part("transitions of a batch", _move_batch, held("transition"))
PROMOTE_BATCH: Final = Part("promotions of a batch", _promote_batch, held("transition"))
RECALL: Final = Part("recall", partial(_recall, "asked"), held("recall", "recall.looked"), "replayed")
RECALL_REPLAY: Final = Part(
    "recall replayed", partial(_recall, "earlier"), held("recall", "recall.looked"), "replayed", recalled, reads=True
)
RESOLVE: Final = Part("resolve", partial(_resolve, "earlier"), held("resolve"), ground=recalled, reads=True)
RESOLVE_ASKED: Final = Part(
    "resolve what is asked", partial(_resolve, "asked"), ("start", "resolve.A1"), ground=recalled, reads=True
)
REVIEW: Final = Part("review", _review, held("review"), reads=True)
DESK: Final = Part("desk", _desk, ("start", "review.A2"), reads=True)
FLAG: Final = Part("flag", _flag, held("flag"))
LIST: Final = Part("list notes", _list, ("start", "inspect_metadata.A2"), reads=True)
DISCOVER: Final = Part("discover the configuration", _discover, ("start", "discover_configuration.A2"), reads=True)
MIGRATE: Final = Part(
    "migrate the policy",
    partial(_migrate, policy_revision="policy-2"),
    ("start", "configured", "migrate_binding.A1", "commit", "migrate_binding.A2"),
)
REWORD: Final = Part(
    "migrate the text configuration",
    partial(_migrate, text_configuration="english"),
    ("start", "configured", "migrate_binding.A1", "commit", "migrate_binding.A2"),
)
MIGRATE_AT_LAST: Final = Part("migrate at last", _migrate_at_last, held("migrate_binding"), ground=rebound)
MIGRATE_CARRYING: Final = Part(
    "migrate and carry grants", partial(_migrate_at_last, carry_grants=True), held("migrate_binding"), ground=rebound
)
REBUILD: Final = Part("rebuild", _rebuild, ("start", "commit", "commit", "commit"))
SECOND_PERSON: Final = Part("ask for a second person", _second_person, ("start",))


def withdrawal(subject: str, action: Action) -> Part:
    """The part of an operator who takes a permission back, at any moment."""
    return Part(
        f"withdraw {action}", partial(_withdraw, subject, action), ("start", "withdrawn"), ends=(subject, action)
    )
