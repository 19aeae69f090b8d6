"""The archive beside a plain model of it: dictionaries written from the specification, the same acts on both.

Each run is some thirty acts over small alphabets, so that identities collide, versions go stale and bindings change
under everybody's feet. After every act both are asked what there is.
"""

from typing import Any
from uuid import UUID, uuid4

from django.db import connections
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from archive.authority import Action, Caller
from archive.lifecycle import Reason, State
from archive.operations import host
from archive.operations.flag import flag
from archive.operations.intake import intake, intake_many
from archive.operations.migration import migrate
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.operations.transition import archive, promote, revoke, transition_many
from archive.refusals import Refusal
from archive.requests import Intake, LexicalRecall, Transition
from tests import flushing

KEY = "plot"
SUBJECTS = ("ann", "ben")
EVERYDAY = (Action.INTAKE, Action.PROMOTE, Action.ARCHIVE, Action.REVOKE, Action.RECALL, Action.RESOLVE, Action.FLAG)
GIVEN = {"ann": set(EVERYDAY), "ben": {Action.RECALL, Action.RESOLVE, Action.FLAG}, "otto": {Action.MIGRATE_BINDING}}
STEPS = {State.PROMOTED: promote, State.ARCHIVED: archive, State.REVOKED: revoke}
ACTION_OF = {State.PROMOTED: Action.PROMOTE, State.ARCHIVED: Action.ARCHIVE, State.REVOKED: Action.REVOKE}
EDGES = {
    ("candidate", "promoted"),
    ("candidate", "revoked"),
    ("promoted", "archived"),
    ("promoted", "revoked"),
    ("archived", "revoked"),
}
TEXTS = ("roses rain", "roses sun", "ferns shade")
QUERIES = ("roses", "sun shade", "moss")

subjects = st.sampled_from(SUBJECTS)
requests = st.sampled_from(["r1", "r2", "r3", "r4", "r5", "r6"])
recalls = st.sampled_from(["q1", "q2", "q3"])
sources = st.sampled_from(["a", "b"])
revisions = st.sampled_from(["1", "2"])
texts = st.sampled_from(TEXTS)
places = st.integers(0, 4)
targets = st.sampled_from(list(STEPS))
reasons = st.sampled_from([Reason.WRONG, Reason.OUTDATED])
# Mostly the version that is there, sometimes one beside it.
slips = st.sampled_from([0, 0, 0, 0, 0, -1, 1])
seldom = st.sampled_from([False, False, False, True])
intakes = st.tuples(requests, sources, revisions, texts)


Chosen = tuple[dict[str, Any], int]
"""A note of the model and the version at which it was selected."""


class Refused(Exception):
    """The model says no, in one word."""


class Model:
    """What the specification says there is."""

    def __init__(self) -> None:
        self.configured = ("o1", "p1")
        self.retained: tuple[str, str] | None = None
        self.granted: set[tuple[str, Action, tuple[str, str]]] = set()
        self.notes: dict[tuple[str, str], dict[str, Any]] = {}
        self.intakes: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.recalls: dict[str, tuple[Any, list[Chosen]]] = {}
        self.flags: set[tuple[UUID, int, str, Reason]] = set()
        self.events = 0
        self.migrations = 0

    def authorise(self, subject: str, action: Action) -> None:
        if (subject, action, self.configured) not in self.granted:
            raise Refused("authority_refused")

    def hold(self) -> None:
        if self.retained is None:
            raise Refused("namespace_absent")
        if self.retained != self.configured:
            raise Refused("binding_mismatch")

    def intake(self, subject: str, request: str, source: str, revision: str, text: str) -> tuple[str, dict[str, Any]]:
        self.authorise(subject, Action.INTAKE)
        if self.retained is not None:
            self.hold()
        return self.admit(subject, request, source, revision, text)

    def admit(self, subject: str, request: str, source: str, revision: str, text: str) -> tuple[str, dict[str, Any]]:
        said = (subject, source, revision, text)
        if request in self.intakes:
            before, held = self.intakes[request]
            if before != said:
                raise Refused("request_conflict")
            return "replayed", held
        found = self.notes.get((source, revision))
        if found is not None and found["state"] == "revoked":
            raise Refused("source_revision_revoked")
        if found is not None and found["text"] != text:
            raise Refused("source_revision_conflict")
        outcome = "existing"
        if found is None:
            outcome = "created"
            found = {"id": None, "source": source, "state": "candidate", "version": 1, "text": text, "next": None}
            self.notes[source, revision] = found
            self.events += 1
        self.retained = self.configured
        self.intakes[request] = (said, found)
        return outcome, found

    def at(self, place: int) -> dict[str, Any] | None:
        held = list(self.notes.values())
        return held[place] if place < len(held) else None

    def step(self, subject: str, found: dict[str, Any] | None, target: str, expected: int) -> None:
        if found is None:
            raise Refused("record_absent")
        if found["version"] != expected:
            raise Refused("lifecycle_version_conflict")
        if (found["state"], target) not in EDGES:
            raise Refused("illegal_transition")
        if target == "promoted":
            for other in self.notes.values():
                if other["source"] == found["source"] and other["state"] == "promoted":
                    other.update(state="archived", version=other["version"] + 1, next=found)
                    self.events += 1
        found.update(state=target, version=found["version"] + 1)
        if target == "revoked":
            found["text"] = None
        self.events += 1

    def recall(
        self, subject: str, request: str, query: str, top_k: int
    ) -> tuple[str, list[tuple[dict[str, Any], int]]]:
        self.authorise(subject, Action.RECALL)
        self.hold()
        said = (self.configured, subject, query, top_k)
        if request in self.recalls:
            before, chosen = self.recalls[request]
            if before != said:
                raise Refused("request_conflict")
            return "replayed", chosen
        words = set(query.split())
        chosen = [
            (held, held["version"])
            for held in self.notes.values()
            if held["state"] == "promoted" and words & set(held["text"].split())
        ]
        self.recalls[request] = (said, chosen)
        return "published", chosen

    def resolve(self, subject: str, request: str) -> dict[UUID, str]:
        self.authorise(subject, Action.RESOLVE)
        self.hold()
        if request not in self.recalls:
            raise Refused("receipt_absent")
        (binding, recaller, _, _), chosen = self.recalls[request]
        if (binding, recaller) != (self.configured, subject):
            raise Refused("receipt_binding_mismatch")
        if any(held["state"] != "promoted" or held["version"] != version for held, version in chosen):
            raise Refused("selection_stale")
        return {held["id"]: held["text"] for held, _ in chosen}

    def flag(self, subject: str, found: dict[str, Any] | None, reason: Reason) -> bool:
        self.authorise(subject, Action.FLAG)
        self.hold()
        if found is None:
            raise Refused("record_absent")
        mark = (found["id"], found["version"], subject, reason)
        repeated = mark in self.flags
        self.flags.add(mark)
        return repeated

    def migrate(self, *, carry: bool) -> bool:
        self.authorise("otto", Action.MIGRATE_BINDING)
        if self.retained is None:
            raise Refused("namespace_absent")
        old, self.retained = self.retained, self.configured
        if old == self.configured:
            return False
        self.migrations += 1
        if carry:
            self.granted |= {
                (subject, action, self.configured) for subject, action, binding in self.granted if binding == old
            }
        return True


class Archive(RuleBasedStateMachine):
    """The same acts on the model and on the archive; both say the same."""

    @initialize(begun=st.sampled_from([True, True, True, False]))
    def plant(self, begun: bool) -> None:
        connections["default"].close()
        with flushing.as_owner() as owner:
            flushing.flush(owner)
        self.model = Model()
        for subject in GIVEN:
            host.map_principal(subject)
        self.configure(self.model.configured)
        for subject, actions in GIVEN.items():
            self.give(subject, actions)
        # Something is there from the start, or most acts would meet an empty garden.
        if begun:
            self.take_in_many([("r1", "a", "1", TEXTS[0]), ("r2", "b", "1", TEXTS[1]), ("r3", "b", "2", TEXTS[2])])
            self.both_hold_the_same()
            self.decide_many([(0, State.PROMOTED, 0), (1, State.PROMOTED, 0)])

    def configure(self, configured: tuple[str, str]) -> None:
        self.model.configured = configured
        self.binding = host.configure_namespace(
            KEY, owner=configured[0], policy_revision=configured[1], by="host:tests"
        )
        self.give("otto", {Action.MIGRATE_BINDING})

    def give(self, subject: str, actions: set[Action]) -> None:
        host.grant(subject, self.binding, sorted(actions), by="host:tests")
        self.model.granted |= {(subject, action, self.model.configured) for action in actions}

    def both(self, ours: Any, theirs: Any) -> tuple[Any, Any]:
        """Do an act on both; return both answers, or (None, None) when both refuse with one word."""
        try:
            expected, word = ours(), None
        except Refused as refused:
            expected, word = None, str(refused)
        try:
            found, code = theirs(), None
        except Refusal as refusal:
            found, code = None, refusal.code
        assert code == word, f"the archive says {code}, the model {word}"
        if word is not None:
            note(f"  {word}")
        return expected, found

    def caller(self, subject: str) -> Caller:
        return Caller.in_namespace(subject, KEY)

    @rule(subject=st.sampled_from(["ann", "ann", "ann", "ben"]), said=intakes)
    def take_in(self, subject: str, said: tuple[str, str, str, str]) -> None:
        expected, found = self.both(
            lambda: self.model.intake(subject, *said), lambda: intake(self.caller(subject), Intake(*said))
        )
        if expected is not None:
            outcome, held = expected
            held["id"] = held["id"] or found.note.id
            assert (found.outcome, found.note.id) == (outcome, held["id"])
            assert (found.note.state, found.note.lifecycle_version) == (held["state"], held["version"])

    @rule(said=st.lists(intakes, min_size=1, max_size=4))
    def take_in_many(self, said: list[tuple[str, str, str, str]]) -> None:
        def each() -> list[Any]:
            self.model.authorise("ann", Action.INTAKE)
            if self.model.retained is not None:
                self.model.hold()
            return [self.word(lambda one=one: self.model.admit("ann", *one)) for one in said]

        expected, found = self.both(each, lambda: intake_many(self.caller("ann"), [Intake(*one) for one in said]))
        for wanted, answer in zip(expected or (), found or (), strict=True):
            met = wanted if isinstance(wanted, str) else wanted[0]
            assert (answer.refusal.code if answer.refusal else answer.given().outcome) == met
            if not isinstance(wanted, str) and wanted[1]["id"] is not None:
                assert answer.given().note.id == wanted[1]["id"]

    def word(self, act: Any) -> Any:
        try:
            return act()
        except Refused as refused:
            return str(refused)

    @rule(subject=st.sampled_from(["ann", "ann", "ann", "ben"]), place=places, to=targets, slip=slips)
    def decide(self, subject: str, place: int, to: State, slip: int) -> None:
        held = self.model.at(place)
        expected_version = max(1, (held["version"] if held else 1) + slip)
        change = Transition(held["id"] if held else uuid4(), to, expected_version)

        def ours() -> dict[str, Any]:
            self.model.authorise(subject, ACTION_OF[to])
            self.model.hold()
            self.model.step(subject, held, to.value, expected_version)
            assert held is not None
            return held

        expected, found = self.both(ours, lambda: STEPS[to](self.caller(subject), change))
        if expected is not None:
            assert (found.note.state, found.note.lifecycle_version) == (expected["state"], expected["version"])

    @rule(wanted=st.lists(st.tuples(places, targets, slips), min_size=1, max_size=4))
    def decide_many(self, wanted: list[tuple[int, State, int]]) -> None:
        if not self.model.notes or any(
            ("ann", ACTION_OF[target], self.model.configured) not in self.model.granted for _, target, _ in wanted
        ):
            return
        held = [self.model.at(place) for place, _, _ in wanted]
        changes = [
            Transition(one["id"] if one else uuid4(), target, max(1, (one["version"] if one else 1) + slip))
            for one, (_, target, slip) in zip(held, wanted, strict=True)
        ]

        def ours() -> list[Any]:
            self.model.hold()
            return [
                self.word(lambda one=one, to=to: self.model.step("ann", one, to.to_state.value, to.expected_version))
                for one, to in zip(held, changes, strict=True)
            ]

        expected, found = self.both(ours, lambda: transition_many(self.caller("ann"), changes))
        for word, answer in zip(expected or (), found or (), strict=True):
            assert (answer.refusal and answer.refusal.code) == word

    @rule(subject=subjects, request=recalls, query=st.sampled_from(QUERIES), top_k=st.sampled_from([20, 20, 19]))
    def ask(self, subject: str, request: str, query: str, top_k: int) -> None:
        expected, found = self.both(
            lambda: self.model.recall(subject, request, query, top_k),
            lambda: recall(self.caller(subject), LexicalRecall(request, query, top_k=top_k)),
        )
        if expected is None:
            return
        outcome, chosen = expected
        assert found.outcome == outcome
        told = {(one["note_id"], one["lifecycle_version"]) for one in found.receipt["selected"]}
        assert told == {(str(held["id"]), version) for held, version in chosen}
        assert found.receipt["outcome"] == ("selected" if chosen else "miss")

    @rule(subject=subjects, request=recalls)
    def open(self, subject: str, request: str) -> None:
        expected, found = self.both(
            lambda: self.model.resolve(subject, request), lambda: resolve(self.caller(subject), request)
        )
        if expected is not None:
            assert {source.note_id: source.text for source in found.sources} == expected

    @rule(subject=subjects, place=places, reason=reasons)
    def mark(self, subject: str, place: int, reason: Reason) -> None:
        held = self.model.at(place)
        expected, found = self.both(
            lambda: self.model.flag(subject, held, reason),
            lambda: flag(self.caller(subject), held["id"] if held else uuid4(), reason),
        )
        if expected is not None:
            assert found.repeated is expected

    @rule(owner=st.sampled_from(["o1", "o2"]), policy=st.sampled_from(["p1", "p2"]), now_and_then=seldom)
    def bind(self, owner: str, policy: str, now_and_then: bool) -> None:
        # Back to the retained binding more now_and_then than away from it.
        self.configure((owner, policy) if now_and_then else self.model.retained or self.model.configured)

    @rule(carry=st.booleans())
    def move(self, carry: bool) -> None:
        expected, found = self.both(
            lambda: self.model.migrate(carry=carry),
            lambda: migrate(self.caller("otto"), reason="Moved.", carry_grants=carry),
        )
        if expected is not None:
            assert (found.migration_id is not None) is expected

    @rule(subject=subjects, action=st.sampled_from(EVERYDAY), now_and_then=seldom)
    def withdraw(self, subject: str, action: Action, now_and_then: bool) -> None:
        if now_and_then:
            host.withdraw(subject, KEY, [action])
            self.model.granted -= {one for one in self.model.granted if one[0] == subject and one[1] is action}

    @rule(subject=subjects)
    def give_again(self, subject: str) -> None:
        self.give(subject, GIVEN[subject])

    @rule(subject=subjects, request=recalls, query=st.sampled_from(["roses", "sun shade"]), place=places, to=targets)
    def ask_decide_open(self, subject: str, request: str, query: str, place: int, to: State) -> None:
        self.ask(subject, request, query, 20)
        self.open(subject, request)
        self.decide("ann", place, to, 0)
        self.open(subject, request)
        self.ask(subject, request, query, 20)

    @invariant()
    def both_hold_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        with flushing.as_owner() as owner:
            held = owner.execute(
                "SELECT s.source_key, n.source_revision, n.id, n.state, n.lifecycle_version, n.text, n.superseded_by_id"
                " FROM archive_note n JOIN archive_source s ON s.id = n.source_id"
            ).fetchall()
            counted = owner.execute(
                "SELECT (SELECT count(*) FROM archive_namespace), (SELECT count(*) FROM archive_source),"
                " (SELECT count(*) FROM archive_intake_request), (SELECT count(*) FROM archive_lifecycle_event),"
                " (SELECT count(*) FROM archive_recall), (SELECT count(*) FROM archive_flag),"
                " (SELECT count(*) FROM archive_binding_migration),"
                " (SELECT count(DISTINCT note_number) FROM archive_posting),"
                " (SELECT coalesce(sum(notes), 0)::int FROM archive_corpus),"
                " (SELECT coalesce(sum(total_length), 0)::int FROM archive_corpus)"
            ).fetchone()
            bound = owner.execute("SELECT owner, policy_revision FROM archive_namespace").fetchone()
        expected = {
            (source, revision): (one["state"], one["version"], one["text"], one["next"] and one["next"]["id"])
            for (source, revision), one in self.model.notes.items()
        }
        assert {(row[0], row[1]): row[3:] for row in held} == expected
        for source, revision, identity, *_ in held:
            one = self.model.notes[source, revision]
            one["id"] = one["id"] or identity
            assert one["id"] == identity
        promoted = [one for one in self.model.notes.values() if one["state"] == "promoted"]
        assert counted == (
            int(self.model.retained is not None),
            len({source for source, _ in self.model.notes}),
            len(self.model.intakes),
            self.model.events,
            len(self.model.recalls),
            len(self.model.flags),
            self.model.migrations,
            len(promoted),
            len(promoted),
            sum(len(one["text"].split()) for one in promoted),
        )
        assert bound == self.model.retained
        assert len(promoted) == len({one["source"] for one in promoted})


def test_the_archive_does_what_a_plain_model_of_it_does(transactional_db):
    run_state_machine_as_test(
        Archive,
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
