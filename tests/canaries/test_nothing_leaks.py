"""Texts, queries and credentials come to light nowhere but where they belong, and after a revocation not even there."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings
from django.db import DatabaseError, connections, transaction

from archive.authority import Caller
from archive.lifecycle import State
from archive.models import Namespace, Note, Source
from archive.operations.transition import revoke
from archive.refusals import Refusal
from archive.transactions import DatabaseFault
from inspection import reads
from lychd import embedded
from tests import cast, flushing
from tests.canaries import sinks
from tests.canaries import story as stories
from tests.canaries.canary import Canary, search
from tests.canaries.story import Story

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Told:
    """The story, what was where before the revocation, and what is where after it."""

    story: Story
    before: dict[Canary, set[sinks.Place]]
    after: dict[Canary, set[sinks.Place]]
    dump_before: bytes
    dump_after: bytes
    log: bytes
    shown: list[stories.Answer]
    """What everybody is shown of the note after the revocation."""


@pytest.fixture(scope="module")
def all_seeing(django_db_setup: None) -> "Iterator[psycopg.Connection[Any]]":
    """Somebody from whom the database keeps nothing."""
    if not settings.LYCHD_EMBEDDED:
        pytest.skip("the database of DATABASE_URL has no superuser that the suite may be")
    parameters = {**flushing.parameters(), "user": embedded.SUPERUSER}
    with psycopg.connect(**parameters, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def told(all_seeing: "psycopg.Connection[Any]", django_db_blocker: Any) -> Iterator[Told]:
    with django_db_blocker.unblock():
        try:
            with flushing.as_owner() as owner:
                story = stories.tell(owner)
            all_seeing.execute("ANALYZE")
            before = sinks.in_database(all_seeing, story.canaries)
            dump_before = sinks.dump(flushing.parameters())
            with sinks.listening() as logs:
                alice = Caller.in_namespace("alice", cast.GARDEN)
                record = reads.note_record(alice, Note.objects.get(source__source_key="canary").id)
                revoke(alice, cast.step(record, State.REVOKED))
                shown = stories.look_again(record.id)
            story.logs.everything.said += logs.everything.said
            story.logs.written.write(logs.as_written())
            connections["default"].close()
            all_seeing.execute("ANALYZE")
            after = sinks.in_database(all_seeing, story.canaries)
            story.statements.append(sinks.statements(all_seeing))
            yield Told(story, before, after, dump_before, sinks.dump(flushing.parameters()), sinks.server_log(), shown)
        finally:
            connections["default"].close()
            with flushing.as_owner() as owner:
                flushing.flush(owner)


def beside_statistics(places: set[sinks.Place]) -> set[sinks.Place]:
    """Leave out what the planner keeps: of session keys it may, since whoever reads it reads the table as well."""
    return {place for place in places if not place[0].startswith(("pg_catalog.pg_statistic", "pg_catalog.pg_stats"))}


def kinds(found: Any) -> list[str]:
    return sorted(canary.kind for canary in found)


# --- before the revocation -------------------------------------------------------------------------------------------


def test_before_the_revocation_the_text_is_where_it_belongs_and_only_there(told):
    """The search finds what is there; without this, that it finds nothing afterwards says nothing."""
    assert told.before[told.story.kept] == {("public.archive_note", "text"), ("public.archive_posting", "lexeme")}
    assert {"raw 0", "raw 1"} <= set(told.story.kept.found_in(told.dump_before))
    assert told.before[told.story.origin] == {("public.archive_note", "asserted_origin")}
    assert told.story.origin.found_in(told.dump_before)


def test_a_session_is_known_by_its_key_and_nothing_else_is(told):
    assert told.story.session
    assert beside_statistics(told.before[told.story.session]) == {("public.django_session", "session_key")}


def test_no_text_that_was_refused_is_in_the_database(told):
    assert kinds(canary for canary in told.story.failed if told.before[canary]) == []


def test_no_query_and_no_credential_is_in_the_database(told):
    assert len(told.story.asked) > 10
    assert kinds(one for one in [*told.story.asked, *told.story.credentials] if told.before[one]) == []


# --- after it --------------------------------------------------------------------------------------------------------


def test_after_the_revocation_no_column_of_any_table_holds_a_word_of_it(told):
    """E1, S-022: postings, planner statistics, events, receipts and all other columns of all schemas."""
    session = told.story.session
    assert session
    assert {canary.kind: places for canary, places in told.after.items() if places and canary != session} == {}
    assert beside_statistics(told.after[session]) == {("public.django_session", "session_key")}


def test_nobody_is_shown_a_word_of_it_at_any_address(told):
    """E0: every member of the cast, API and pages; a receipt that selected it resolves to a refusal."""
    assert {answer.status_code for answer in told.shown} >= {200, 403, 409}
    assert len(told.shown) == 18 * len(cast.ROLES)
    for answer in told.shown:
        assert answer.status_code < 500, answer
        assert kinds(search([told.story.kept, told.story.origin], answer.content)) == [], answer
    resolved = [answer for answer in told.shown if str(answer.request["PATH_INFO"]).endswith("/resolve")]
    assert len(resolved) == 2 * len(cast.ROLES)
    assert all(answer.status_code in {403, 409} for answer in resolved)


def test_a_whole_dump_holds_no_word_of_it(told):
    """E1."""
    assert len(told.dump_after) > 10_000
    found = search(told.story.canaries, told.dump_after)
    assert kinds(found) == ["session key"]


# --- logs ------------------------------------------------------------------------------------------------------------


def test_the_servers_log_holds_none_of_them(told):
    """The failures are in it; what the failing rows said is not."""
    assert b"canary_check" in told.log
    assert b"unforeseen" in told.log
    assert b"division by zero" in told.log
    assert b"canceling statement due to" in told.log
    assert kinds(search(told.story.canaries, told.log)) == []


def test_a_server_that_quotes_details_would_have_told(told, all_seeing):
    """The known leaker is real, and it is the setting that keeps it quiet: a row in full, by a session that is loud."""
    control = Canary.sentence("control")
    quiet = Canary.sentence("the same under the settings of this server")
    for canary, verbosity in ((quiet, None), (control, "default")):
        with pytest.raises(psycopg.errors.CheckViolation) as refusal:
            _insert_secret(all_seeing, canary, verbosity)
        # The driver is told in either case: that is why the data layer strips its errors.
        assert canary.found_in(str(refusal.value))
    log = sinks.server_log()
    assert control.found_in(log)
    assert not quiet.found_in(log)


def _insert_secret(connection: "psycopg.Connection[Any]", canary: Canary, verbosity: str | None) -> None:
    with connection.transaction():
        connection.execute("SELECT 1 FROM archive_namespace FOR UPDATE")
        if verbosity:
            connection.execute("SELECT set_config('log_error_verbosity', %s, true)", [verbosity])
        connection.execute(
            "INSERT INTO archive_note (id, namespace_id, source_id, source_revision, state, lifecycle_version, kind,"
            " text, classification, retention_class, admitted_subject) SELECT gen_random_uuid(), namespace_id, id,"
            " 'control', 'candidate', 1, 'note', %s, 'secret', 'standard', 'alice' FROM archive_source LIMIT 1",
            [canary.text],
        )


def test_the_services_log_holds_none_of_them(told):
    written = told.story.logs.as_written()
    assert '"authority"' in written
    assert "DatabaseFault" in written
    assert kinds(search(told.story.canaries, written)) == []


def test_no_logger_was_even_handed_one(told):
    """Whatever formatter is put in place: message, values, exception, its causes and contexts."""
    said = told.story.logs.as_handed_over()
    assert len(said) > 1_000
    assert kinds(search(told.story.canaries, said)) == []


def test_no_statement_that_others_can_see_quotes_a_value(told):
    assert any("INSERT INTO" in said and "archive_note" in said for said in told.story.statements)
    assert kinds(search(told.story.canaries, "\n".join(told.story.statements))) == []


# --- errors ----------------------------------------------------------------------------------------------------------


def test_no_error_that_leaves_an_operation_carries_one(told):
    """C31: not in what it says, nor in its traceback, cause, context, arguments or attributes."""
    names = [type(error).__name__ for error in told.story.errors]
    assert names.count("DatabaseFault") == 2 * len(stories.FAULTY) + 1
    assert names.count("ArchiveTimeout") == 3
    assert all(isinstance(error, Refusal | DatabaseFault) for error in told.story.errors)
    for error in told.story.errors:
        assert kinds(search(told.story.canaries, sinks.everything_said_by(error))) == [], error


def test_an_error_of_the_database_is_alone(told):
    for error in told.story.errors:
        if isinstance(error, DatabaseFault):
            assert (error.__cause__, error.__context__) == (None, None)


def test_one_layer_below_the_errors_do_carry_it(told):
    """What the two tests above look for is there to be found."""
    canary = Canary.sentence("control")
    with transaction.atomic():
        namespace = Namespace.objects.select_for_update().get()
        source = Source.objects.filter(namespace=namespace).first()
        # The database fills in what is left out, and quotes the row where a constraint refuses it.
        filled = dict.fromkeys(("char_count", "byte_count", "text_digest", "material_digest", "policy_revision"))
        with pytest.raises(DatabaseError) as refusal, transaction.atomic():
            Note.objects.create(
                id=uuid4(),
                namespace=namespace,
                source=source,
                source_revision="control",
                text=canary.text,
                classification="secret",
                admitted_subject="alice",
                **filled,
            )
    assert canary.found_in(sinks.everything_said_by(refusal.value))


def test_no_refusal_over_http_repeats_what_was_sent(told):
    statuses = {answer.status_code for answer in told.story.refused}
    assert {400, 401, 403, 404, 409, 413, 415, 500} <= statuses
    for answer in told.story.refused:
        assert answer.status_code >= 400
        whole = answer.content + repr(dict(answer.headers)).encode()
        assert kinds(search(told.story.canaries, whole)) == [], answer


def test_no_answer_shows_more_than_its_address_says(told):
    showing = 0
    for answer in told.story.answered:
        found = search(told.story.canaries, answer.content + repr(dict(answer.headers)).encode())
        # A record says where its note came from, until that is revoked.
        showing += told.story.origin in found
        assert kinds(found.keys() - {told.story.origin}) == [], answer
    assert showing == 2


def test_no_command_repeats_what_it_was_asked(told):
    assert {code for code, _, _ in told.story.commands} >= {0, 2, 3}
    for code, out, err in told.story.commands:
        assert kinds(search(told.story.canaries, out + err)) == [], (code, out, err)


def test_no_receipt_says_what_was_asked_or_found(told):
    for receipt in told.story.receipts:
        assert kinds(search(told.story.canaries, repr(receipt))) == []
