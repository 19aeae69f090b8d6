"""The handbook of the demonstration, brought into an archive through the operations, and who signs in."""

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model

from archive import limits
from archive.authority import Caller
from archive.lifecycle import Reason, State
from archive.operations import host
from archive.operations.intake import intake
from archive.operations.recall import recall
from archive.operations.transition import archive, promote, revoke
from archive.records import NoteRecord
from archive.requests import Intake, LexicalRecall, Transition
from lychd import handbook
from lychd.handbook import HandbookNote

NAMESPACE = "handbook"
SECOND = "lighthouse"
LONGEST = "n" * limits.IDENTIFIER_MAX
"""A namespace in which every name is as long as a name may be, and has no place to break."""
PASSWORD = "correct horse battery staple"
USERS = {"lead-curator": ("curator", "inspector"), "auditor": ("inspector",), "newcomer": (), "keeper": ("operator",)}
AGENTS = ("incident-agent", "release-agent", "support-agent", "oncall-curator")


@dataclass(frozen=True)
class Shelf:
    """The notes worth a look, by what is special about each."""

    revision: UUID
    hidden: UUID
    promoted: UUID
    archived: UUID
    tombstone: UUID
    longest: UUID
    arabic: UUID
    unbroken: UUID
    receipt: str = "handbook-question-4"
    miss: str = "handbook-question-miss"


def load() -> Shelf:
    """Take the handbook in, leave each note where it belongs, ask its questions."""
    binding = host.configure_namespace(NAMESPACE, owner="ferry-office", policy_revision="policy-1", by="host:tests")
    second = host.configure_namespace(SECOND, owner="ferry-office", policy_revision="policy-1", by="host:tests")
    for subject, roles in USERS.items():
        user = get_user_model().objects.create_user(subject, password=PASSWORD)
        host.map_principal(subject, user_id=user.pk)
        if roles:
            host.grant(subject, binding, host.actions_of(roles), by="host:tests")
    unbroken = _unbroken()
    host.grant("lead-curator", second, host.actions_of(("curator", "inspector")), by="host:tests")
    for subject in AGENTS:
        host.map_principal(subject)
        host.grant(subject, binding, host.actions_of(("writer", "recaller", "curator")), by="host:tests")

    found = {(note.source_key, note.source_revision): _settled(note).id for note in handbook.notes()}

    asker = Caller.in_namespace("support-agent", NAMESPACE)
    for number, asked in enumerate(handbook.story().more_questions, 1):
        recall(asker, LexicalRecall(f"handbook-question-{number}", asked.question, char_budget=1_500))
    recall(asker, LexicalRecall("handbook-question-miss", "zeppelin"))
    return Shelf(
        revision=found["runbooks/disk-full", "3"],
        hidden=found["inbox/settlement-account", "1"],
        promoted=found["runbooks/restore-from-backup", "3"],
        archived=found["decisions/nightly-reports", "2"],
        tombstone=found["support/partner-portal", "1"],
        longest=found["incidents/double-charges/transcript", "1"],
        arabic=found["support/ar/refund-status", "1"],
        unbroken=unbroken,
    )


def _unbroken() -> UUID:
    """A candidate beside a promoted revision, and a receipt, all of the longest names."""
    binding = host.configure_namespace(LONGEST, owner="o" * 128, policy_revision="p" * 128, by="host:tests")
    agent = "a" * limits.IDENTIFIER_MAX
    host.map_principal(agent)
    for subject in (agent, "lead-curator"):
        host.grant(subject, binding, host.actions_of(("writer", "recaller", "curator", "inspector")), by="host:tests")
    caller = Caller.in_namespace(agent, LONGEST)
    notes = [
        intake(
            caller,
            Intake(
                letter * limits.IDENTIFIER_MAX,
                "s" * limits.IDENTIFIER_MAX,
                letter * limits.IDENTIFIER_MAX,
                "W" * 3_000 + " words",
                asserted_origin="r" * limits.REFERENCE_MAX,
                kind="k" * limits.KIND_MAX,
            ),
        ).note
        for letter in "12"
    ]
    promote(caller, Transition(notes[0].id, State.PROMOTED, 1))
    recall(caller, LexicalRecall("q" * limits.IDENTIFIER_MAX, "words"))
    return notes[1].id


def _settled(told: HandbookNote) -> NoteRecord:
    """Take one note in and bring it where the handbook leaves it; the rest happens when its successor arrives."""
    admitter = Caller.in_namespace(told.by, NAMESPACE)
    wanted = Intake(
        f"{told.source_key}:{told.source_revision}".replace("/", "."),
        told.source_key,
        told.source_revision,
        told.text,
        asserted_origin=told.asserted_origin,
    )
    note = intake(admitter, wanted).note
    if told.curator is None:
        return note
    curator = Caller.in_namespace(told.curator, NAMESPACE)
    reason = None if told.reason is None else Reason(told.reason)
    if told.end_state == State.REVOKED.value:
        return revoke(curator, Transition(note.id, State.REVOKED, 1, reason)).note
    note = promote(curator, Transition(note.id, State.PROMOTED, 1)).note
    if told.archived_by_hand:
        return archive(curator, Transition(note.id, State.ARCHIVED, 2, reason)).note
    return note
