"""What has to hold after everything: read with raw SQL as the owner, judged without the code that wrote it.

I1   one request identity, one material, for ever
I2   one source revision, one note, tombstones included
I3   at most one promoted revision a source
I4   a version is a number of steps, each told once, each along a legal edge
I5   a revoked note has no text, and nothing that is not promoted has words or vectors
I6   a receipt selects only what was promoted, at that version, at its moment
     and: whatever is written is written under the policy that was in force then
I7   a receipt has no text in it and its digest recomputes
I18  nothing of another namespace changes, not even the version of a row
I20  nobody is left inside a transaction, and no deadlock was ever met
and: the postings and the corpus figures are what the promoted notes say.

Refusals, replays and reads that change nothing (I8, I11, I14, I16, I19) are judged by whoever knows what was asked.
"""

import hashlib
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
import rfc8785
from psycopg.rows import dict_row

Row = Mapping[str, Any]

MEMORY: Final = (
    "archive_binding_migration",
    "archive_flag",
    "archive_intake_request",
    "archive_lifecycle_event",
    "archive_note",
    "archive_recall",
    "archive_source",
    "semantic_derivation",
    "semantic_generation",
)
"""The tables with a namespace column; a test compares this list with the catalogue."""

DERIVED: Final = ("archive_corpus", "archive_posting")

# Written out once more on purpose: an edge added by mistake in the code is not added here.
EDGES: Final = frozenset(
    {
        (None, "candidate"),
        ("candidate", "promoted"),
        ("promoted", "archived"),
        ("candidate", "revoked"),
        ("promoted", "revoked"),
        ("archived", "revoked"),
    }
)
_TEXTLESS: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}|[0-9a-f]{64}|f64:[0-9a-f]{16}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
)


@dataclass(frozen=True)
class Ledger:
    """Every row of one namespace at one moment."""

    namespace: Row | None
    notes: tuple[Row, ...] = ()
    events: tuple[Row, ...] = ()
    requests: tuple[Row, ...] = ()
    receipts: tuple[Row, ...] = ()
    flags: tuple[Row, ...] = ()
    migrations: tuple[Row, ...] = ()
    postings: tuple[Row, ...] = ()
    vectors: tuple[Row, ...] = ()
    corpus: Row | None = None
    words: tuple[Row, ...] = ()

    def shape(self) -> Hashable:
        """The same without what differs from run to run: ids and times. Two equal histories have equal shapes."""
        names = {note["id"]: (note["source_key"], note["source_revision"]) for note in self.notes}
        numbers = {note["note_number"]: names[note["id"]] for note in self.notes}
        return (
            None if self.namespace is None else (self.namespace["policy_revision"], self.namespace["lexical_state"]),
            frozenset(
                (names[note["id"]], note["state"], note["lifecycle_version"], note["text"], note["policy_revision"])
                for note in self.notes
            ),
            tuple((names[event["note_id"]], event["to_state"], event["cause"]) for event in self.events),
            frozenset((one["request_id"], names[one["note_id"]], one["created_note"]) for one in self.requests),
            frozenset(
                (
                    one["request_id"],
                    one["receipt"]["outcome"],
                    one["receipt"].get("lexical", {}).get("corpus_notes"),
                    *sorted((chosen["source_key"], chosen["source_revision"]) for chosen in one["receipt"]["selected"]),
                )
                for one in self.receipts
            ),
            frozenset((names[one["note_id"]], one["lifecycle_version"], one["subject"]) for one in self.flags),
            tuple((one["new_policy_revision"], one["new_text_configuration"]) for one in self.migrations),
            frozenset((numbers[one["note_number"]], one["lexeme"], one["tf"]) for one in self.postings),
            None if self.corpus is None else (self.corpus["notes"], self.corpus["total_length"]),
        )


def read(owner: "psycopg.Connection[Any]", key: str) -> Ledger:
    """Read a namespace whole, in one snapshot."""
    with owner.transaction(), owner.cursor(row_factory=dict_row) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        namespace = cursor.execute("SELECT * FROM archive_namespace WHERE key = %s", [key]).fetchone()
        if namespace is None:
            return Ledger(None)

        def rows(question: str) -> tuple[Row, ...]:
            return tuple(cursor.execute(question, {"namespace": namespace["id"]}, prepare=True).fetchall())

        def all_of(table: str, order: str) -> tuple[Row, ...]:
            return rows(f"SELECT * FROM {table} WHERE namespace_id = %(namespace)s ORDER BY {order}")

        corpus = all_of("archive_corpus", "namespace_id")
        return Ledger(
            namespace,
            notes=rows(
                "SELECT n.*, s.source_key, s.namespace_id AS source_namespace_id FROM archive_note n"
                " JOIN archive_source s ON s.id = n.source_id WHERE n.namespace_id = %(namespace)s ORDER BY n.id"
            ),
            events=all_of("archive_lifecycle_event", "id"),
            requests=all_of("archive_intake_request", "id"),
            receipts=all_of("archive_recall", "created_at, id"),
            flags=all_of("archive_flag", "id"),
            migrations=all_of("archive_binding_migration", "created_at, id"),
            postings=all_of("archive_posting", "note_number, lexeme"),
            vectors=rows(
                "SELECT d.note_id, s.derivation_id IS NOT NULL AS scanned FROM semantic_derivation d"
                " LEFT JOIN semantic_scan s ON s.derivation_id = d.id"
                " WHERE d.namespace_id = %(namespace)s AND (d.vector IS NOT NULL OR s.derivation_id IS NOT NULL)"
            ),
            corpus=corpus[0] if corpus else None,
            words=rows(
                "SELECT n.note_number, w.lexeme, w.tf FROM archive_namespace s"
                " JOIN archive_note n ON n.namespace_id = s.id AND n.state = 'promoted' AND n.text IS NOT NULL"
                " CROSS JOIN LATERAL archive_lexemes(s.text_configuration::regconfig, n.text, true) w"
                " WHERE s.id = %(namespace)s"
            ),
        )


def check(ledger: Ledger) -> None:
    """Raise AssertionError with the number of the first invariant that does not hold."""
    if ledger.namespace is None:
        return
    for rule in (_requests, _revisions, _one_promoted, _steps, _tombstones, _receipts, _policies, _words):
        rule(ledger)


def _requests(ledger: Ledger) -> None:
    notes = {note["id"]: note for note in ledger.notes}
    _unique("I1: one request identity", (one["request_id"] for one in ledger.requests))
    _unique("I1: one receipt identity", (one["request_id"] for one in ledger.receipts))
    for one in ledger.requests:
        note = notes[one["note_id"]]
        material = _material(ledger, note)
        said = {"request_id": one["request_id"], "subject": one["subject"], "material": material}
        assert one["material_digest"] == note["material_digest"], f"I1: {one['request_id']} names other material"
        assert one["material_digest"] == _digest("lychd.intake.material@1", material), "I1: a material digest is wrong"
        assert one["request_digest"] == _digest("lychd.intake.request@1", said), "I1: a request digest is wrong"
    makers = Counter(one["note_id"] for one in ledger.requests if one["created_note"])
    assert set(makers) == set(notes), "I1: a note that no request created"
    assert set(makers.values()) <= {1}, "I1: a note that two requests created"


def _material(ledger: Ledger, note: Row) -> dict[str, Any]:
    assert ledger.namespace is not None
    return {
        "namespace": ledger.namespace["key"],
        **{
            name: note[name]
            for name in ("source_key", "source_revision", "asserted_origin", "kind", "text_digest", "char_count")
        },
        "byte_count": note["byte_count"],
        "classification": note["classification"],
        "retention": {"class": note["retention_class"], "retain_until": _instant(note["retain_until"])},
        "observed_at": _instant(note["observed_at"]),
    }


def _revisions(ledger: Ledger) -> None:
    _unique("I2: one note a revision", ((note["source_key"], note["source_revision"]) for note in ledger.notes))
    for note in ledger.notes:
        assert note["source_namespace_id"] == note["namespace_id"], "I2: a note of another namespace's source"
        if note["text"] is not None:
            told = hashlib.sha256(b"lychd.text@1\x00" + note["text"].encode()).hexdigest()
            assert note["text_digest"] == told, "I2: a text that is not its digest"


def _one_promoted(ledger: Ledger) -> None:
    _unique("I3: one promoted revision", (note["source_id"] for note in ledger.notes if note["state"] == "promoted"))


def _steps(ledger: Ledger) -> None:
    told: dict[Any, list[Row]] = defaultdict(list)
    for event in ledger.events:
        told[event["note_id"]].append(event)
    assert set(told) <= {note["id"] for note in ledger.notes}, "I4: an event of no note here"
    for note in ledger.notes:
        steps = told[note["id"]]
        versions = [step["to_version"] for step in steps]
        assert versions == list(range(1, note["lifecycle_version"] + 1)), (
            f"I4: version {note['lifecycle_version']} with the events {versions}"
        )
        before = None
        for step in steps:
            assert step["from_state"] == before, f"I4: a step from {step['from_state']} after one to {before}"
            assert (before, step["to_state"]) in EDGES, f"I4: the edge {before} to {step['to_state']}"
            before = step["to_state"]
        assert before == note["state"], f"I4: told to be {before}, is {note['state']}"
        times = [step["created_at"] for step in steps]
        assert times == sorted(times), "I4: a step told before the one that it follows"
        assert times[-1] == note["state_changed_at"], "I4: a step at another time than its row says"


def _tombstones(ledger: Ledger) -> None:
    promoted = {note["note_number"] for note in ledger.notes if note["state"] == "promoted"}
    for note in ledger.notes:
        assert (note["text"] is None) == (note["state"] == "revoked"), f"I5: a {note['state']} note and its text"
        assert note["asserted_origin"] is None or note["state"] != "revoked", "I5: a tombstone with an origin"
    strays = {one["note_number"] for one in ledger.postings} - promoted
    assert not strays, f"I5: words of {len(strays)} notes that are not promoted"
    eligible = {note["id"] for note in ledger.notes if note["state"] == "promoted"}
    strays = {one["note_id"] for one in ledger.vectors} - eligible
    assert not strays, f"I5: vectors of {len(strays)} notes that are not promoted"


def _receipts(ledger: Ledger) -> None:
    assert ledger.namespace is not None
    notes = {str(note["id"]): note for note in ledger.notes}
    steps: dict[tuple[str, int], Row] = {(str(event["note_id"]), event["to_version"]): event for event in ledger.events}
    for row in ledger.receipts:
        receipt, at = row["receipt"], row["created_at"]
        sealed = {name: value for name, value in receipt.items() if name != "receipt_digest"}
        assert (
            _digest(f"lychd.receipt@{row['schema']}", sealed) == receipt["receipt_digest"] == row["receipt_digest"]
        ), "I7: a receipt that is not its digest"
        for value in _strings(receipt):
            assert _TEXTLESS.fullmatch(value), f"I7: free text in a receipt, {len(value)} characters"
        assert (receipt["outcome"] == "selected") == bool(receipt["selected"]), "I7: an outcome that is not so"
        assert receipt["namespace"] == ledger.namespace["key"], "I6: a receipt of another namespace"
        for chosen in [*receipt["selected"], *receipt["omitted"]]:
            assert chosen["note_id"] in notes, "I6: a selected note that is not in this namespace"
        for chosen in receipt["selected"]:
            came = steps[chosen["note_id"], chosen["lifecycle_version"]]
            went = steps.get((chosen["note_id"], chosen["lifecycle_version"] + 1))
            assert came["to_state"] == "promoted", f"I6: selected while {came['to_state']}"
            assert came["created_at"] <= at, "I6: selected before it was promoted"
            assert went is None or at <= went["created_at"], "I6: selected after it had left"


def _policies(ledger: Ledger) -> None:
    """A migration ends the old policy for whoever writes after it, however early they had come to the door."""
    assert ledger.namespace is not None
    ended = [(one["created_at"], one["old_policy_revision"]) for one in ledger.migrations]

    def in_force(at: datetime) -> str:
        assert ledger.namespace is not None
        return next((old for end, old in ended if at < end), ledger.namespace["policy_revision"])

    written = [(event["created_at"], event["policy_revision"], "a step") for event in ledger.events]
    written += [(note["created_at"], note["policy_revision"], "a note") for note in ledger.notes]
    written += [(one["created_at"], one["receipt"]["policy_revision"], "a receipt") for one in ledger.receipts]
    for at, policy, what in written:
        assert policy == in_force(at), f"I6: {what} under {policy} while {in_force(at)} was in force"


def _words(ledger: Ledger) -> None:
    assert ledger.namespace is not None
    promoted = [note for note in ledger.notes if note["state"] == "promoted"]
    corpus = ledger.corpus or {"notes": 0, "total_length": 0}
    assert corpus["notes"] == len(promoted), f"corpus: counts {corpus['notes']} of {len(promoted)} promoted notes"
    lengths = {one["note_number"]: one["length"] for one in ledger.postings}
    assert corpus["total_length"] == sum(lengths.values()), "corpus: a length that the postings do not have"
    if ledger.namespace["lexical_state"] == "ready":
        held = {(one["note_number"], one["lexeme"], one["tf"]) for one in ledger.postings}
        truth = {(one["note_number"], one["lexeme"], one["tf"]) for one in ledger.words}
        assert held == truth, f"postings: {len(held - truth)} too many, {len(truth - held)} missing"


def fingerprint(owner: "psycopg.Connection[Any]", key: str) -> str:
    """Digest every row of a namespace with the transaction that wrote it, so that even an idle rewrite shows (I18)."""
    parts = " UNION ALL ".join(
        f"SELECT '{table}' AS place, t.xmin::text || t::text AS written FROM {table} t, here"
        f" WHERE t.namespace_id = here.id"
        for table in (*MEMORY, *DERIVED)
    )
    row = owner.execute(
        "WITH here AS (SELECT id FROM archive_namespace WHERE key = %(key)s), written AS ("
        f" {parts} UNION ALL SELECT 'archive_namespace', t.xmin::text || t::text FROM archive_namespace t, here"
        " WHERE t.id = here.id)"
        " SELECT encode(sha256(convert_to(string_agg(place || written, '|' ORDER BY place, written), 'UTF8')), 'hex')"
        " FROM written",
        {"key": key},
    ).fetchone()
    assert row is not None
    assert row[0], f"nothing is retained under {key}"
    return str(row[0])


def deadlocks(owner: "psycopg.Connection[Any]") -> int:
    """How many deadlocks this database has met."""
    owner.execute("SELECT pg_stat_clear_snapshot()")
    row = owner.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


def require_idle(owner: "psycopg.Connection[Any]", pids: Iterable[int]) -> None:
    """Nobody of these is left inside a transaction or with a lock (I20)."""
    left = owner.execute(
        "SELECT a.pid, a.state FROM pg_stat_activity a WHERE a.pid = ANY(%s::integer[])"
        " AND (a.state LIKE 'idle in transaction%%' OR EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid))",
        [list(pids)],
        prepare=True,
    ).fetchall()
    assert not left, f"I20: left inside a transaction: {left}"


def require_gone(owner: "psycopg.Connection[Any]", pids: Iterable[int]) -> None:
    """None of these is connected any more; a server process needs a moment to end after its client has left."""
    deadline = time.monotonic() + 10
    while left := owner.execute("SELECT pid FROM pg_stat_activity WHERE pid = ANY(%s)", [list(pids)]).fetchall():
        assert time.monotonic() < deadline, f"I20: still connected: {left}"


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _unique(rule: str, values: Iterable[Hashable]) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    assert not twice, f"{rule}: {len(twice)} more than once"


def _digest(domain: str, value: Any) -> str:
    # Through JSON once, so that what is hashed is what PostgreSQL keeps.
    return hashlib.sha256(domain.encode() + b"\x00" + rfc8785.dumps(json.loads(json.dumps(value)))).hexdigest()


def _instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
