"""A receipt has one closed form, checked by the database where it is written and by the archive where it is opened."""

import json
import uuid
from typing import Any

import psycopg
import pytest

from archive import canonical, forms, receipts
from archive.models import Recall
from archive.operations.recall import recall
from archive.operations.resolution import resolve
from archive.refusals import IntegrityFailure
from archive.requests import LexicalRecall
from inspection import reads
from inspection.cursors import PageRequest
from lychd import doctor
from tests import cast
from tests.operations.forgeries import LEXICAL, UNTRUE, forged


@pytest.fixture
def receipt(alice, bob) -> dict[str, Any]:
    """A receipt that takes one note and leaves one out."""
    cast.promoted(alice, "Roses roses roses.", source="a", asserted_origin="letters/1")
    cast.promoted(alice, "Roses, and a great deal about what they want.", source="b")
    return recall(bob, LexicalRecall("q1", "roses", char_budget=20)).receipt


def inserted(serving, receipt: dict[str, Any]) -> str | None:
    """Write a receipt as a row that agrees with it, and take it back; the SQLSTATE and rule of whoever refused."""
    columns = ("request_id", "schema", "request_digest", "receipt_digest", "subject", "purpose", "created_at")
    row = {name: receipt.get(name) for name in columns}
    row["created_at"] = row["created_at"] if isinstance(row["created_at"], str) else None
    try:
        with serving.transaction(force_rollback=True):
            serving.execute("SELECT 1 FROM archive_namespace WHERE key = 'garden' FOR SHARE")
            serving.execute("SELECT set_config('lychd.hold', 'shared', true)")
            serving.execute(
                f"INSERT INTO archive_recall (namespace_id, id, receipt, {', '.join(columns)})"
                " SELECT id, %s, %s::jsonb, %s, %s, %s, %s, %s, %s, %s::timestamptz FROM archive_namespace"
                " WHERE key = 'garden'",
                [receipt.get("receipt_id"), json.dumps(receipt), *(row[name] for name in columns)],
            )
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary}"
    return None


def now(serving) -> str:
    (moment,) = serving.execute("SELECT clock_timestamp()").fetchone()
    return canonical.instant(moment)


def anew(serving, receipt: dict[str, Any]) -> dict[str, Any]:
    """A receipt that could have been written next, under an identity of its own."""

    def change(made: dict[str, Any]) -> None:
        made.update(request_id="q2", receipt_id=str(uuid.uuid4()))

    return forged(receipt, change)


def written(serving, receipt: dict[str, Any], change: Any = lambda made: None) -> str | None:
    """Insert with the clock of that very transaction, unless the change names a time."""
    serving.execute("BEGIN")
    try:
        made = anew(serving, receipt)
        made["created_at"] = now(serving)
        return inserted(serving, forged(made, change))
    finally:
        serving.execute("ROLLBACK")


def test_the_database_takes_what_an_act_would_have_written(serving, receipt):
    assert written(serving, receipt) is None


@pytest.mark.usefixtures("receipt")
def test_the_database_refuses_every_receipt_of_another_form(serving, receipt):
    """R-L-102, R-L-141: as the serving role, sealed and in agreement with its row."""
    said = {name: written(serving, receipt, change) for name, change in {**LEXICAL, **UNTRUE}.items()}
    assert {name: word for name, word in said.items() if word is None or not word.startswith("LY011 ")} == {}
    assert len(said) > 50


def test_the_form_in_sql_and_the_form_in_python_agree(owner, receipt):
    """One declaration makes both; what either of them lets through alone would be a hole in the other."""
    sql = f"SELECT coalesce({forms.LEXICAL.sql('given.receipt')}, false) FROM (SELECT %s::jsonb AS receipt) AS given"

    for name, change in {"nothing": lambda made: None, **LEXICAL}.items():
        made = forged(receipt, change)
        (holds,) = owner.execute(sql, [json.dumps(made)]).fetchone()
        assert holds == forms.is_whole(made), name


@pytest.mark.parametrize("schema", sorted(forms.FORMS))
def test_every_schema_that_is_read_has_a_form_and_a_trigger(owner, schema):
    triggers = owner.execute(
        "SELECT pg_get_functiondef(tgfoid) FROM pg_trigger WHERE tgrelid = 'archive_recall'::regclass"
        " AND tgname LIKE 'pgtrigger%%truth%%'"
    ).fetchall()
    assert any(f"NEW.schema <> {schema} " in body for (body,) in triggers)


def overwritten(superuser, receipt: dict[str, Any]) -> None:
    """Put a forged receipt into the one row, as only a superuser with the triggers off can."""
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(
        "UPDATE archive_recall SET receipt = %s::jsonb, receipt_digest = %s, request_digest = coalesce(%s, ''),"
        " subject = coalesce(%s, ''), purpose = coalesce(%s, '')",
        [
            json.dumps(receipt),
            receipt["receipt_digest"],
            *(receipt.get(name) for name in ("request_digest", "subject", "purpose")),
        ],
    )


def test_no_forged_receipt_is_opened_and_the_doctor_finds_each(alice, bob, ivy, receipt, superuser):
    whole = Recall.objects.get()
    assert receipts.opened(whole, "garden") == receipt
    for name, change in LEXICAL.items():
        overwritten(superuser, forged(receipt, change))
        with pytest.raises(IntegrityFailure):
            reads.receipt(ivy, "q1")
        (line,) = reads.list_receipts(ivy, PageRequest()).items
        assert not line.intact, name
        (finding,) = doctor._receipts(deep=True)
        assert finding.verdict is doctor.Verdict.FAILED, name
    overwritten(superuser, receipt)
    assert resolve(bob, "q1").sources
    assert doctor._receipts(deep=True).__next__().verdict is doctor.Verdict.OK


def test_a_receipt_of_an_earlier_binding_stays_whole(alice, bob, ivy, receipt):
    """A binding that existed is one; what never was is none (R-L-141)."""
    row = Recall.objects.select_related("namespace").get()
    assert (receipt["owner"], receipt["policy_revision"]) in receipts.Bindings(row.namespace)
    assert (receipt["owner"], "never") not in receipts.Bindings(row.namespace)
    assert receipts.is_intact(row, "garden", receipts.Bindings(row.namespace))
    assert not receipts.is_intact(row, "garden", {("somebody", "else")})


@pytest.mark.parametrize("column", ["request_digest", "receipt_digest", "subject", "purpose"])
def test_a_row_that_says_otherwise_than_its_receipt_is_shown_to_nobody(ivy, receipt, superuser, column):
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(f"UPDATE archive_recall SET {column} = 'otherwise'")
    with pytest.raises(IntegrityFailure):
        reads.receipt(ivy, "q1")
