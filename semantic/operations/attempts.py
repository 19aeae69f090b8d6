"""Attempts: lease, claim, embed, close, settle; every step in its own time, no lock across any of them (R-L-177..194).

The same attempt runs inline or in the worker. Notes may be embedded together; each attempt keeps its own token, fence,
deadline and receipt, and one that is refused refuses alone. Nothing here runs by itself and nothing is tried twice.

# Note [Why the row is locked before the clock is read]
A statement's own time is taken when it begins, and a wait for a lock may outlast a deadline. So the rows are locked in
a statement of their own, and only the next one compares the deadline with `clock_timestamp()`.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import DatabaseError, connection

from archive import authority, batches, canonical
from archive.authority import Action, Caller, Point, Question
from archive.batches import Answer
from archive.gates import gate
from archive.lifecycle import State as NoteState
from archive.models import Namespace, Note
from archive.refusals import AuthorityRefused, Fault, IntegrityFailure, Internal, InvalidRequest, Refusal, Unavailable
from archive.transactions import locked, moment, savepoint
from semantic import limits, manifest, vectors
from semantic.embedders import Item, Kind
from semantic.embedding import Vector, session
from semantic.lifecycle import State
from semantic.manifest import Configured
from semantic.models import Derivation, Generation
from semantic.models.derivation import METADATA
from semantic.operations.generations import standing
from semantic.records import DerivationRecord
from semantic.refusals import (
    AttemptFenced,
    DerivationAbsent,
    DerivationInvalidated,
    DerivationNotClaimable,
    SourceNotEligible,
)

log = logging.getLogger(__name__)

_NOT_ALLOWED = "LY007"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is asked for: one derivation, at the row version that the caller saw."""

    derivation_id: UUID
    expected_row_version: int
    retry: bool = False


@dataclass(frozen=True, slots=True)
class _Claim:
    """A won claim: its token, and the only copy of the text outside the archive."""

    row: Derivation
    token: UUID
    identity: str
    text: str = field(repr=False)


def run_attempt(caller: Caller, attempt: Attempt) -> DerivationRecord:
    """Embed one prepared note and store its vector; a complete one is told again and nothing is embedded (R-L-182).

    A refusal after the claim leaves the row `failed` with its code, or fenced. Raises what it was refused for.
    """
    (answer,) = run_attempts(caller, [attempt])
    return answer.given()


def run_attempts(caller: Caller, attempts: Sequence[Attempt]) -> list[Answer[DerivationRecord]]:
    """Try up to 32 derivations of one namespace together; each has its own answer, in order."""
    _bounded(attempts)
    wanted = manifest.configured(caller.binding)
    ledger = _Ledger(caller, wanted, attempts)
    ledger.ask(Point.A0)
    claims: dict[UUID, _Claim] = {}
    given: Mapping[str, Vector | Refusal] = {}
    try:
        with session(wanted) as embedding:
            gate("attempt.leased")
            claims = ledger.claim()
            gate("attempt.claimed")
            items = [Item(str(claim.row.id), claim.text) for claim in claims.values()]
            if items:
                given = embedding.embed(items, Kind.DOCUMENT, lambda: ledger.ask_for(claims, Point.AX))
            gate("attempt.embedded")
    except Refusal as refusal:
        if not claims:
            raise
        # The lease or the driver could not be closed: whatever was embedded may not be published (R-L-193).
        given = {str(claimed): refusal for claimed in claims}
    gate("attempt.closed")
    ledger.settle(claims, given)
    gate("attempt.settled")
    ledger.ask(Point.A2)
    batches.record(ledger.answers(), Action.EXECUTE_DERIVATION, caller.namespace)
    return ledger.answers()


def _bounded(attempts: Sequence[Attempt]) -> None:
    if not 1 <= len(attempts) <= limits.EMBED_BATCH:
        raise InvalidRequest([Fault("/items", f"1 to {limits.EMBED_BATCH} derivations")])
    if len({attempt.derivation_id for attempt in attempts}) != len(attempts):
        raise InvalidRequest([Fault("/items", "each derivation once")])
    if any(attempt.expected_row_version < 1 for attempt in attempts):
        raise InvalidRequest([Fault("/expected_row_version", "a whole number, 1 or more")])


class _Ledger:
    """Who asks for what, what was answered so far, and the transactions that write it."""

    def __init__(self, caller: Caller, wanted: Configured, attempts: Sequence[Attempt]) -> None:
        self._caller = caller
        self._wanted = wanted
        self._attempts = {attempt.derivation_id: attempt for attempt in attempts}
        self._answers: dict[UUID, Answer[DerivationRecord]] = {}
        self._questions = {attempt.derivation_id: self._question(attempt) for attempt in attempts}

    def answers(self) -> list[Answer[DerivationRecord]]:
        return [self._answers[derivation_id] for derivation_id in self._attempts]

    # --- authority -----------------------------------------------------------------------------------------------

    def _question(self, attempt: Attempt) -> Question:
        keys = {"derivation_id": str(attempt.derivation_id), "manifest_digest": self._wanted.digest}
        lookup = canonical.lookup_digest(Action.EXECUTE_DERIVATION, self._caller.namespace, keys)
        return self._caller.asks(Action.EXECUTE_DERIVATION, about=lookup)

    def ask(self, point: Point) -> None:
        """Ask for everything not refused yet; what is refused now has that for its answer, and all of it the call."""
        places = [one for one in self._attempts if (answer := self._answers.get(one)) is None or answer.refusal is None]
        allowed = authority.decide([self._questions[place].asked for place in places], point)
        if places and not any(allowed):
            raise AuthorityRefused
        for place, yes in zip(places, allowed, strict=True):
            if not yes:
                self._answers[place] = Answer(refusal=AuthorityRefused())

    def ask_for(self, claims: Iterable[UUID], point: Point) -> None:
        """Go on only if all of these are allowed right now: what is handed over together is refused together."""
        gate(f"{Action.EXECUTE_DERIVATION}.{point}")
        if not all(authority.decide([self._questions[claimed].asked for claimed in claims], point)):
            raise AuthorityRefused

    # --- claim ---------------------------------------------------------------------------------------------------

    def claim(self) -> dict[UUID, _Claim]:
        """Take the rows that may be taken, in one hold: a fresh token, one attempt more, a minute to live."""
        with locked(self._caller.binding) as namespace:
            rows = self._held(namespace, self._attempts)
            notes = _promoted(namespace, rows.values())
            for derivation_id, row in rows.items():
                about = _identity(namespace, row)
                self._questions[derivation_id] = self._questions[derivation_id].about(about)
            gate(f"{Action.EXECUTE_DERIVATION}.{Point.A1}")
            self.ask(Point.A1)
            generation = standing(namespace, self._wanted)
            claims: dict[UUID, _Claim] = {}
            for derivation_id, attempt in self._attempts.items():
                if derivation_id in self._answers:
                    continue
                try:
                    claim = self._claimed(namespace, generation, attempt, rows.get(derivation_id), notes)
                except Refusal as refusal:
                    self._answers[derivation_id] = Answer(refusal=refusal)
                    continue
                if claim is not None:
                    claims[derivation_id] = claim
        return claims

    def _held(self, namespace: Namespace, derivation_ids: Iterable[UUID]) -> dict[UUID, Derivation]:
        """Lock the rows in a statement of their own; see Note [Why the row is locked before the clock is read]."""
        rows = (
            Derivation.objects.select_related("generation")
            .only(*METADATA, "generation__reference", "generation__manifest_digest", "attempt_token")
            .filter(namespace=namespace, id__in=list(derivation_ids))
            .order_by("id")
            .select_for_update(of=("self",))
        )
        return {row.id: row for row in rows}

    def _claimed(
        self,
        namespace: Namespace,
        generation: Generation,
        attempt: Attempt,
        row: Derivation | None,
        notes: Mapping[UUID, Note],
    ) -> _Claim | None:
        """Judge and claim one row; None says that it is complete already."""
        if row is None or row.generation_id != generation.id:
            raise DerivationAbsent
        if row.state == State.INVALIDATED:
            raise DerivationInvalidated
        note = notes.get(row.note_id)
        if note is None or note.lifecycle_version != row.note_lifecycle_version or note.text is None:
            raise SourceNotEligible
        if row.state == State.COMPLETE:
            self._answers[row.id] = Answer(DerivationRecord.of(row, reference=generation.reference, now=moment()))
            return None
        if row.row_version != attempt.expected_row_version:
            raise DerivationNotClaimable
        if not canonical.same(canonical.text_digest(note.text), row.text_digest):
            raise IntegrityFailure
        token = uuid4()
        # A failed or an expired attempt is taken up again by an explicit retry alone (R-L-179).
        open_states = [State.PREPARED.value, *([State.FAILED.value, State.RUNNING.value] if attempt.retry else [])]
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE semantic_derivation AS d SET state = 'running', attempt = d.attempt + 1,"
                " row_version = d.row_version + 1, attempt_token = %s, claimed_at = c.now,"
                " deadline = c.now + make_interval(secs => %s), failure_code = NULL, settled_at = NULL"
                " FROM (SELECT clock_timestamp() AS now) AS c"
                " WHERE d.id = %s AND d.namespace_id = %s AND d.row_version = %s AND d.state = ANY(%s)"
                " AND (d.deadline IS NULL OR d.deadline <= c.now)"
                " RETURNING d.attempt, d.row_version, d.claimed_at, d.deadline",
                [
                    token,
                    limits.ATTEMPT_SECONDS,
                    row.id,
                    namespace.id,
                    attempt.expected_row_version,
                    open_states,
                ],
            )
            taken = cursor.fetchone()
        if taken is None:
            raise DerivationNotClaimable
        row.attempt, row.row_version, row.claimed_at, row.deadline = taken
        return _Claim(row, token, _identity(namespace, row), note.text)

    # --- settle --------------------------------------------------------------------------------------------------

    def settle(self, claims: Mapping[UUID, _Claim], given: Mapping[str, Vector | Refusal]) -> None:
        """Complete what was embedded and fail the rest, in one hold; a late result changes nothing (R-L-191, 192)."""
        if not claims:
            return
        failed = {
            derivation_id: answer if isinstance(answer := given.get(str(derivation_id)), Refusal) else None
            for derivation_id in claims
        }
        done = {derivation_id: claims[derivation_id] for derivation_id, refusal in failed.items() if refusal is None}
        refused: dict[UUID, Refusal] = {one: refusal for one, refusal in failed.items() if refusal is not None}
        if done:
            try:
                refused.update(self._complete(done, given))
            except Refusal as refusal:
                refused.update(dict.fromkeys(done, refusal))
        fenced = {one for one, refusal in refused.items() if isinstance(refusal, AttemptFenced)}
        self._answers.update({one: Answer(refusal=refusal) for one, refusal in refused.items()})
        if set(refused) - fenced:
            try:
                self._fail({one: claims[one] for one in refused if one not in fenced}, refused)
            except Unavailable as unavailable:
                # Then nobody lets go of the claims, and the database's clock does.
                log.warning("claims are left to expire", extra={"code": unavailable.code, "claims": len(refused)})

    def _complete(self, claims: Mapping[UUID, _Claim], given: Mapping[str, Vector | Refusal]) -> dict[UUID, Refusal]:
        refused: dict[UUID, Refusal] = {}
        records: dict[UUID, DerivationRecord] = {}
        with locked(self._caller.binding) as namespace:
            # The rows before the question: A1 stands after every wait.
            rows = self._held(namespace, claims)
            self.ask_for(claims, Point.A1)
            for derivation_id, claim in claims.items():
                vector = given[str(derivation_id)]
                if not isinstance(vector, Vector) or derivation_id not in rows:
                    refused[derivation_id] = Internal()
                    continue
                try:
                    with savepoint():
                        records[derivation_id] = self._stored(claim, vector)
                except Refusal as refusal:
                    refused[derivation_id] = refusal
        self._answers.update({one: Answer(record) for one, record in records.items()})
        return refused

    def _stored(self, claim: _Claim, vector: Vector) -> DerivationRecord:
        """Write one vector if its claim still lives, and read it back bit by bit (R-L-174)."""
        finished = moment()
        receipt = self._receipt(claim, vector, finished)
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE semantic_derivation SET state = 'complete', row_version = row_version + 1,"
                    " attempt_token = NULL, claimed_at = NULL, deadline = NULL, vector = %s::vector,"
                    " vector_digest = %s, l2_norm = %s, receipt = %s::jsonb, settled_at = %s"
                    " WHERE id = %s AND state = 'running' AND attempt_token = %s AND attempt = %s"
                    " AND row_version = %s AND deadline > clock_timestamp()",
                    [
                        vectors.sent(vector.data),
                        vector.digest,
                        vector.l2,
                        json.dumps(receipt),
                        finished,
                        claim.row.id,
                        claim.token,
                        claim.row.attempt,
                        claim.row.row_version,
                    ],
                )
                stored = cursor.rowcount == 1
        except DatabaseError as error:
            if getattr(error.__cause__, "sqlstate", None) != _NOT_ALLOWED:
                raise
            # Between the comparison and the trigger the last moment passed.
            stored = False
        if not stored:
            raise AttemptFenced
        row = Derivation.objects.only(*METADATA).get(id=claim.row.id)
        if not canonical.same(vectors.digest(_read_back(claim.row.id)), vector.digest):
            raise IntegrityFailure
        return DerivationRecord.of(row, reference=self._wanted.reference, now=finished)

    def _receipt(self, claim: _Claim, vector: Vector, finished: datetime) -> dict[str, Any]:
        started = claim.row.claimed_at
        return {
            "profile": self._wanted.profile,
            "binding_digest": self._wanted.embed_binding_digest,
            "derivation_digest": claim.identity,
            "attempt": claim.row.attempt,
            "input_bytes": vector.rendered_bytes,
            "tokens": vector.tokens,
            "vector_digest": vector.digest,
            "l2": canonical.real(vector.l2),
            "started_at": None if started is None else canonical.instant(started),
            "finished_at": canonical.instant(finished),
        }

    def _fail(self, claims: Mapping[UUID, _Claim], refused: Mapping[UUID, Refusal]) -> None:
        """Let go of claims with the code of what went wrong. Asks nobody: it tells nothing and gives nothing."""
        with locked(self._caller.binding) as namespace:
            self._held(namespace, claims)
            with connection.cursor() as cursor:
                cursor.execute(
                    "UPDATE semantic_derivation AS d SET state = 'failed', row_version = d.row_version + 1,"
                    " attempt_token = NULL, claimed_at = NULL, deadline = NULL, failure_code = f.code,"
                    " settled_at = clock_timestamp()"
                    " FROM unnest(%s::uuid[], %s::uuid[], %s::text[]) AS f (id, token, code)"
                    " WHERE d.id = f.id AND d.state = 'running' AND d.attempt_token = f.token",
                    [
                        list(claims),
                        [claim.token for claim in claims.values()],
                        [refused[derivation_id].code for derivation_id in claims],
                    ],
                )


def _identity(namespace: Namespace, row: Derivation) -> str:
    return manifest.derivation_digest(
        namespace=namespace.key,
        reference=row.generation.reference,
        manifest_digest=row.generation.manifest_digest,
        source_key=row.source_key,
        source_revision=row.source_revision,
        text_digest=row.text_digest,
    )


def _promoted(namespace: Namespace, rows: Iterable[Derivation]) -> dict[UUID, Note]:
    notes = Note.objects.filter(
        namespace=namespace, id__in=[row.note_id for row in rows], state=NoteState.PROMOTED
    ).only("id", "lifecycle_version", "text")
    return {note.id: note for note in notes}


def _read_back(derivation_id: UUID) -> bytes:
    with connection.cursor() as cursor:
        cursor.execute("SELECT vector_send(vector) FROM semantic_derivation WHERE id = %s", [derivation_id])
        (sent,) = cursor.fetchone()
    return vectors.received(bytes(sent))
