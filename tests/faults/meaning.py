"""The faults of derivation and recall by meaning; tests/faults/registry.py plants them with all the others."""

from collections.abc import Iterator
from typing import Final

from tests.faults.planting import Code, Constant, Constraint, Fault, Function, Gutted, Privilege, Together

LOOSE: Final = "__import__('tests.faults.loose').faults.loose."

FENCES = "tests/semantic/test_fences.py::"
BORDERS = "tests/semantic/test_borders.py::"
POINTS = "tests/semantic/test_check_points.py::test_a_permission_that_ends_is_missed_at_the_next_point"
HOLDS = "tests/semantic/test_holds.py::"
RACES = "tests/semantic/test_races.py::test_every_schedule_of_two_ends_as_one_of_the_few_ways_that_may_be"
GENERATIONS = "tests/semantic/test_j_generations.py::"
DERIVATION = "tests/semantic/test_k_derivation.py::"
RECALL = "tests/semantic/test_l_recall.py::"
EXACTNESS = "tests/semantic/test_exactness.py::"
VECTORS = "tests/semantic/test_vectors.py::"
WORKER = "tests/semantic/test_worker.py::"
LEASES = "tests/semantic/test_leases.py::"
SIGNED = "tests/semantic/test_signed.py::"

# --- the catalogue ---------------------------------------------------------------------------------------------------

_TRIPPED: Final = "test_a_trigger_refuses_what_breaks_its_rule[{rule}-*"
_FOREIGN: Final = "tests/semantic/test_truths.py::test_a_foreign_value_is_refused_by_name_or_has_no_effect[{}-{}]"
_SHARED: Final = {
    "a_nslock": "test_a_change_needs_the_namespace_held_alone*",
    "space": "test_a_derived_row_gets_its_space_from_its_namespace",
    "nodelete": "test_nothing_of_it_can_be_deleted_even_by_the_owner",
}
TRIGGERS: Final = {
    "semantic_generation": {
        **_SHARED,
        "generation": _TRIPPED,
        "invalidate": "test_a_retired_generation_takes_every_derivation_with_it_even_by_raw_sql",
        "truth": _FOREIGN.format("semantic_generation", "manifest_digest"),
    },
    "semantic_derivation": {
        **_SHARED,
        "same_namespace": _TRIPPED,
        "derivation_identity": "test_no_column_of_the_identity_ever_changes*",
        "derivation_edge": _TRIPPED,
        "derivation_zdone": _TRIPPED,
        "truth": _FOREIGN.format("semantic_derivation", "vector_digest"),
        "scan": "test_the_scan_is_exactly_what_is_complete",
    },
    "archive_note": {
        "semantic_invalidate": "test_a_note_that_leaves_takes_its_derivations_with_it_even_by_raw_sql*",
    },
}
UNIQUES: Final = {
    "semantic_generation": ("generation_reference_once", "generation_manifest_once"),
    "semantic_derivation": ("derivation_once",),
}
CHECKS: Final = {
    "semantic_generation": ("generation_retirement",),
    "semantic_derivation": (
        *("derivation_state", "derivation_chunk", "derivation_counts", "derivation_vector_while_complete"),
        *("derivation_receipt_once_complete", "derivation_token_while_running", "derivation_deadline"),
        *("derivation_failure_while_failed", "derivation_invalidation", "derivation_dimensions"),
        "derivation_unit_length",
    ),
    "semantic_coverage": ("coverage_complete_not_negative",),
}


def triggers() -> Iterator[Fault]:
    """Each trigger made to do nothing."""
    for table, rules in TRIGGERS.items():
        for rule, test in rules.items():
            place = f"trigger {table}.{rule}"
            named = test if test.startswith("tests/") else FENCES + test.format(rule=rule)
            yield Fault(place, Gutted(table, rule), (named,), (place,))
    written = "trigger archive_recall.semantic_truth"
    forged = "tests/semantic/test_forged.py::test_no_forged_receipt_of_meaning_is_written_or_whole"
    yield Fault(written, Gutted("archive_recall", "semantic_truth"), (forged,), (written,))


def constraints() -> Iterator[Fault]:
    """Each uniqueness and each check dropped."""
    refused = "test_a_check_refuses_with_every_trigger_off"
    for kinds, test in ((UNIQUES, "test_a_second_of_what_is_unique_is_refused"), (CHECKS, refused)):
        for table, names in kinds.items():
            for name in names:
                place = f"constraint {table}.{name}"
                yield Fault(place, Constraint(table, name), (f"{FENCES}{test}[{name}]",), (place,))


def _silent(function: str, rule: str, sqlstate: str, test: str, *, times: int = 1) -> Fault:
    said = f"RAISE EXCEPTION '{rule}' USING ERRCODE = '{sqlstate}';"
    return Fault(
        f"semantic rule: {function} says no {rule}", Function(function, said, "NULL;", times), (FENCES + test,)
    )


def rules() -> Iterator[Fault]:
    """Each thing that a trigger says no to, said no more; and each part of what a derivation stands on."""
    said = {
        "generation": {
            "LY006": {"generation_birth": 1, "generation_manifest": 2, "generation_edge": 1},
            "LY003": {"generation_version_step": 1},
        },
        "derivation_edge": {
            "LY003": {"derivation_birth": 1, "derivation_edge": 1, "derivation_version_step": 1,
                      "derivation_attempt_step": 1},
            "LY007": {"derivation_source": 2, "attempt_alive": 1, "attempt_token": 1, "attempt_deadline": 1},
            "LY001": {"derivation_receipt": 1},
        },
        "derivation_zdone": {"LY007": {"derivation_vector": 1}},
    }  # fmt: skip
    for function, states in said.items():
        for sqlstate, names in states.items():
            for rule, times in names.items():
                test = f"test_a_trigger_refuses_what_breaks_its_rule[{function}-{sqlstate}-{rule}-*"
                yield _silent(function, rule, sqlstate, test, times=times)
    yield _silent(
        *("derivation_zdone", "attempt_expired", "LY007"),
        "test_an_expired_attempt_cannot_be_completed_and_can_be_taken_again",
    )
    yield _silent(
        *("derivation_zdone", "derivation_padding", "LY007"), "test_nothing_but_zeros_stands_where_a_manifest_pads"
    )
    stands = (
        ("promoted", "note.state = 'promoted' AND", ""),
        ("text", "AND note.text IS NOT NULL", ""),
        ("version", "note.lifecycle_version = NEW.note_lifecycle_version AND", ""),
        ("digest", "AND note.text_digest = NEW.text_digest", ""),
        ("revision", "AND note.source_revision = NEW.source_revision", ""),
        ("active", "AND generation.state = 'active'", ""),
    )
    for function, times in (("derivation_edge", 2), ("derivation_zdone", 1)):
        for what, old, new in stands:
            test = f"test_nothing_is_tried_or_completed_without_what_it_stands_on[{function}-{what}]"
            yield Fault(
                f"semantic rule: {function} does not look at {what}",
                Function(function, old, new, times),
                (FENCES + test,),
            )


VECTOR_RULES: Final = tuple(
    Fault(
        f"semantic rule: derivation_zdone does not look at the {what}",
        Function("derivation_zdone", old, "FALSE"),
        (f"{FENCES}test_a_trigger_refuses_what_breaks_its_rule[derivation_zdone-LY007-derivation_vector-*",),
    )
    for what, old in (
        ("dimensions", "public.vector_dims(NEW.vector) <> NEW.dimensions"),
        ("length", "NOT (abs(public.vector_norm(NEW.vector) - 1) <= 0.001 + 1e-12)"),
        ("length that is told", "NOT (abs(NEW.l2_norm - public.vector_norm(NEW.vector)) <= 1e-9)"),
    )
)

DATABASE: Final = (
    Fault(
        "semantic: a vector may have any dimension",
        Constraint("semantic_derivation", "derivation_generation_dimensions"),
        (f"{FENCES}test_a_vector_has_the_dimension_of_its_generation",),
    ),
    Fault(
        "semantic: a retired generation's derivations are invalidated by nobody",
        Together(
            (
                Gutted("semantic_generation", "invalidate"),
                Code("semantic.operations.generations:retire", "_invalidate(row)", "pass"),
            )
        ),
        (f"{DERIVATION}test_s167_a_generation_retired_meanwhile_fences_the_attempt",),
    ),
    *(
        Fault(
            f"semantic: a note that is {what} says something else",
            Function("semantic_invalidate", old, "FALSE"),
            (f"{DERIVATION}{test}",),
        )
        for what, old, test in (
            ("revoked", "NEW.state = 'revoked'", "test_s165_a_note_revoked_while_it_is_embedded_leaves_no_vector"),
            (
                "superseded",
                "NEW.superseded_by_id IS NOT NULL",
                "test_s166_a_newer_revision_fences_the_older_ones_attempt",
            ),
        )
    ),
    *(
        Fault(f"semantic scan: {what}", Function("semantic_derivation_scan", old, new), (test,))
        for what, old, new, test in (
            (
                "a vector that is gone stays findable",
                "WHERE scan.derivation_id = gone.id AND gone.state = 'complete'",
                "WHERE false",
                f"{FENCES}test_a_note_that_leaves_takes_its_derivations_with_it_even_by_raw_sql*",
            ),
            (
                "a vector that is there is not findable",
                "WHERE come.state = 'complete';\n    INSERT",
                "WHERE false;\n    INSERT",
                f"{FENCES}test_the_scan_is_exactly_what_is_complete",
            ),
            (
                "coverage counts what has gone",
                "SELECT generation_id, -1 AS by",
                "SELECT generation_id, 0 AS by",
                f"{FENCES}test_a_retired_generation_takes_every_derivation_with_it_even_by_raw_sql",
            ),
            (
                "coverage does not count what has come",
                "SELECT generation_id, 1 FROM come",
                "SELECT generation_id, 0 FROM come",
                f"{RECALL}test_s200_coverage_counts_what_has_a_vector_and_the_nearest_come_first",
            ),
            (
                "what padding fills is copied",
                "coalesce((generation.manifest #>> '{embed_binding,padding,from}')::integer, come.dimensions)",
                "come.dimensions",
                f"{EXACTNESS}test_padding_is_left_out_of_the_scan_and_changes_no_score",
            ),
        )
    ),
    *(
        Fault(
            f"privilege: the service may {privilege} {table}",
            Privilege(privilege, table),
            (f"{FENCES}test_the_serving_role_writes_no_derived_row_and_deletes_nothing*",),
        )
        for privilege, table in (
            ("DELETE", "semantic_derivation"),
            ("DELETE", "semantic_generation"),
            ("INSERT", "semantic_scan"),
            ("UPDATE", "semantic_coverage"),
        )
    ),
)

# --- holds -----------------------------------------------------------------------------------------------------------

ATTEMPTS: Final = "semantic.operations.attempts:"
A_CHANGE: Final = f"{HOLDS}test_a_change_holds_its_namespace_against_everybody"
A_RECALL: Final = f"{HOLDS}test_a_recall_holds_its_namespace_against_changes_alone"
ROW_LOCKS: Final = "test_a_preparation_locks_its_note_and_a_retirement_its_generation_before_they_ask"


REBUILD: Final = "tests/semantic/test_rebuild.py::"
_COMPLETE: Final = "derivation.state = 'complete'"


def rebuilds() -> Iterator[Fault]:
    """What a rebuild of the copies asks for, what it writes and removes, and who may not read meanwhile."""
    for name, planting, test in (
        (
            "a step asks for no hold",
            Function("semantic_held_for_rebuild", "IS DISTINCT FROM 'exclusive'", "= 'never'"),
            "test_what_runs_with_the_owners_rights_asks_for_the_hold*",
        ),
        (
            "a copy that is there is taken for right",
            Function(
                "semantic_rebuild_slice",
                "(scan.generation_id, scan.half) IS DISTINCT FROM",
                "false AND (scan.generation_id, scan.half) IS DISTINCT FROM",
            ),
            "test_whatever_drifted_is_what_the_trigger_wrote_again*",
        ),
        (
            "copies of what is not complete stay",
            Function("semantic_rebuild_finish", f"AND {_COMPLETE})\n", ")\n"),
            "test_whatever_drifted_is_what_the_trigger_wrote_again*",
        ),
        (
            "recall reads meanwhile",
            Code("semantic.exact:rank", "if rebuilding:", "if False:"),
            "test_recall_refuses_from_the_first_hold_to_the_last_and_replays_stay",
        ),
    ):
        yield Fault(f"semantic rebuild: {name}", planting, (REBUILD + test,))


def holds() -> Iterator[Fault]:
    """Each hold that holds nothing, and each row that is not locked."""
    for where, call, test in (
        ("semantic.operations.generations:register", "locked", f"{A_CHANGE}[register]"),
        ("semantic.operations.generations:retire", "locked", f"{A_CHANGE}[retire]"),
        ("semantic.operations.preparation:prepare_many", "locked", f"{A_CHANGE}[prepare]"),
        (f"{ATTEMPTS}_Ledger.claim", "locked", f"{A_CHANGE}[attempt]"),
        (f"{ATTEMPTS}_Ledger._complete", "locked", f"{A_CHANGE}[attempt]"),
        (f"{ATTEMPTS}_Ledger._fail", "locked", f"{A_CHANGE}[attempt that fails]"),
        ("semantic.operations.rebuild:_held", "held", f"{A_CHANGE}[rebuild]"),
        ("semantic.operations.recall:_preflight", "shared", f"{A_RECALL}[recall]"),
        ("semantic.operations.recall:_final", "shared", f"{A_RECALL}[recall]"),
        ("semantic.operations.resolution:resolve", "shared", f"{A_RECALL}[resolve]"),
        (
            *("semantic.operations.request:request", "snapshot"),
            f"{HOLDS}test_asking_for_an_attempt_looks_at_one_moment_and_could_write_nothing",
        ),
        (
            *(f"{ATTEMPTS}_Ledger._complete", "savepoint"),
            f"{BORDERS}test_one_that_the_database_finds_too_late_is_fenced_alone",
        ),
    ):
        name = where.split(".")[-1]
        yield Fault(
            f"semantic hold: {name} {call} holds nothing",
            Code(where, f"with {call}(", f"with {LOOSE}{call}("),
            (test,),
            (f"{where} {call}",),
        )
    for where, old, new, test in (
        (
            f"{ATTEMPTS}_Ledger._held",
            *('.select_for_update(of=("self",))', ""),
            "test_an_attempt_locks_its_row_before_it_asks_and_before_it_looks_at_the_clock",
        ),
        ("semantic.operations.preparation:_notes", '.select_for_update(of=("self",))', "", ROW_LOCKS),
        ("semantic.operations.generations:retire", "select_for_update()", "all()", ROW_LOCKS),
    ):
        yield Fault(
            f"semantic hold: {where.split('.')[-1]} locks no row",
            Code(where, old, new),
            (HOLDS + test,),
            (f"{where} select_for_update",),
        )


# --- authority -------------------------------------------------------------------------------------------------------


def questions() -> Iterator[Fault]:
    """Each question that is not asked, at each point."""
    plain = [
        (f"semantic.operations.{module}:{function}", point, act)
        for module, function, points, act in (
            ("generations", "discover", ("A0", "A2"), "discover"),
            ("generations", "register", ("A0", "A1", "A2"), "register"),
            ("generations", "retire", ("A0", "A1", "A2"), "retire"),
            ("request", "request", ("A0", "A2"), "request"),
            ("resolution", "resolve", ("A0", "A1", "A2"), "resolve"),
            ("recall", "_preflight", ("A1",), "recall"),
            ("recall", "_final", ("A1",), "recall"),
            ("recall", "recall", ("A0",), "recall"),
        )
        for point in points
    ]
    for where, point, act in plain:
        yield _unasked(where, point, act, f"question.require(Point.{point})", f"require {point}")
    for where, point, act, old, said in (
        ("recall:_embedded", "AX", "recall", "lambda: question.require(Point.AX)", "require AX"),
        ("recall:recall", "A2", "recall replayed", "question.require(Point.A2)\n        return seen", "require A2"),
        ("recall:recall", "A2", "recall", "question.require(Point.A2)\n    return recalled", "require A2 2"),
        *(
            ("preparation:prepare_many", point, "prepare", f"_ask(questions, answers, Point.{point})", f"_ask {point}")
            for point in ("A0", "A1", "A2")
        ),
        ("attempts:run_attempts", "A0", "attempt", "ledger.ask(Point.A0)", "ask A0"),
        ("attempts:run_attempts", "AX", "attempt", "lambda: ledger.ask_for(claims, Point.AX)", "ask_for AX"),
        ("attempts:run_attempts", "A2", "attempt", "ledger.ask(Point.A2)", "ask A2"),
        ("attempts:_Ledger.claim", "A1", "attempt", "self.ask(Point.A1)", "ask A1"),
        ("attempts:_Ledger._complete", "A1", "attempt", "self.ask_for(claims, Point.A1)", "ask_for A1"),
    ):
        yield _unasked(f"semantic.operations.{where}", point, act, old, said)
    for place, old, new in (
        ("", "try:\n        ask()", "try:\n        pass"),
        (" 2", "if fitting:\n            ask()", "if fitting:\n            pass"),
    ):
        yield Fault(
            f"semantic authority: nobody asks before the embedder is handed something{place}",
            Code("semantic.embedding:Session.embed", old, new),
            (f"{POINTS}[attempt]",),
            (f"semantic.embedding:Session.embed ask{place}",),
        )
    for where, old, act in (
        ("preparation:_ask", "authority.decide([questions[place].asked for place in places], point)", "prepare"),
        (
            "attempts:_Ledger.ask",
            "authority.decide([self._questions[place].asked for place in places], point)",
            "attempt",
        ),
    ):
        yield Fault(
            f"semantic authority: no answer counts in {where.split(':')[-1]}",
            Code(f"semantic.operations.{where}", old, "[True] * len(places)"),
            (f"{POINTS}[{act}]",),
            (f"semantic.operations.{where} decide",),
        )
    yield Fault(
        "semantic authority: no answer counts in _Ledger.ask_for",
        Code(
            f"{ATTEMPTS}_Ledger.ask_for",
            "not all(authority.decide([self._questions[claimed].asked for claimed in claims], point))",
            "False",
        ),
        (f"{POINTS}[attempt]",),
        (f"{ATTEMPTS}_Ledger.ask_for decide",),
    )
    yield Fault(
        "semantic authority: one yes of several is enough",
        Code("semantic.operations.preparation:_ask", "if not yes:", "if False:"),
        ("tests/semantic/test_check_points.py::test_in_a_batch_each_note_has_its_own_answer",),
    )


def _unasked(where: str, point: str, act: str, old: str, said: str) -> Fault:
    new = old.replace(f"question.require(Point.{point})", "None") if "\n" in old else "None"
    new = f"lambda: {new}" if old.startswith("lambda") else new
    return Fault(
        f"semantic authority: {where.split('.')[-1]} does not {said}",
        Code(where, old, new),
        (f"{POINTS}[{act}]",),
        (f"{where} {said}",),
    )


# --- judgements ------------------------------------------------------------------------------------------------------

MANIFEST: Final = "semantic.manifest:"
STANDING: Final = "semantic.operations.generations:standing"
S202: Final = f"{RECALL}test_s202_a_generation_that_does_not_stand_is_a_failure_and_embeds_nothing"


def _judged(part: str, *rows: tuple[str, str, str, str, str]) -> Iterator[Fault]:
    for what, where, old, new, test in rows:
        yield Fault(f"semantic {part}: {what}", Code(where, old, new), (test,))


GENERATION_FAULTS: Final = tuple(
    _judged(
        "generation",
        (
            "another manifest under one reference is taken for the same",
            "semantic.operations.generations:register",
            "not canonical.same(row.manifest_digest, wanted.digest)",
            "False",
            f"{GENERATIONS}test_s153_another_manifest_under_the_same_reference_refuses*",
        ),
        (
            "a retired one is registered again",
            "semantic.operations.generations:register",
            "row.state != GenerationState.ACTIVE",
            "False",
            f"{GENERATIONS}test_s154_a_retired_generation_stays_retired",
        ),
        ("another manifest stands", STANDING, "not canonical.same(row.manifest_digest, wanted.digest)", "False", S202),
        ("a retired one stands", STANDING, "row.state != GenerationState.ACTIVE", "False", S202),
        (
            "one of another namespace stands",
            STANDING,
            "namespace_id = %s AND",
            "(namespace_id = %s OR true) AND",
            f"{BORDERS}test_nothing_of_another_namespace_is_prepared_tried_or_retired",
        ),
        (
            "one of another namespace is retired",
            "semantic.operations.generations:retire",
            "namespace=namespace, ",
            "",
            f"{BORDERS}test_nothing_of_another_namespace_is_prepared_tried_or_retired",
        ),
        (
            "derivation answers while it is off",
            f"{MANIFEST}require_derivation",
            "raise DerivationOff",
            "return {}",
            f"{GENERATIONS}test_with_derivation_off_nothing_of_it_answers",
        ),
        (
            "recall by meaning answers while it is off",
            f"{MANIFEST}require_semantic",
            "raise SemanticOff",
            "pass",
            f"{RECALL}test_semantic_recall_is_off_unless_it_is_switched_on",
        ),
    )
)

CLAIMED: Final = f"{ATTEMPTS}_Ledger._claimed"
STORED: Final = f"{ATTEMPTS}_Ledger._stored"
REQUEST: Final = "semantic.operations.request:request"
NEEDED: Final = "semantic.operations.request:_needed"
SEEN_VERSION: Final = f"{BORDERS}test_an_attempt_is_asked_for_on_the_row_version_that_was_seen"
OF_ANOTHER: Final = f"{BORDERS}test_a_derivation_of_another_generation_is_absent"
ELSEWHERE: Final = f"{BORDERS}test_nothing_of_another_namespace_is_prepared_tried_or_retired"

ATTEMPT_FAULTS: Final = (
    *_judged(
        "preparation",
        (
            "a candidate is prepared",
            "semantic.operations.preparation:_prepared",
            "note is not None and note.state == NoteState.PROMOTED",
            "note is not None",
            f"{DERIVATION}test_s183_only_a_promoted_note_can_be_prepared",
        ),
        (
            "a note of another namespace is prepared",
            "semantic.operations.preparation:_notes",
            "namespace=namespace, ",
            "",
            ELSEWHERE,
        ),
        (
            "what is prepared is prepared again",
            "semantic.operations.preparation:_prepared",
            "if note.id not in rows",
            "if True",
            f"{DERIVATION}test_s160_preparing_twice_is_one_row_and_reads_no_text",
        ),
    ),
    *_judged(
        "claim",
        ("a row of another generation is taken", CLAIMED, " or row.generation_id != generation.id", "", OF_ANOTHER),
        (
            "an invalidated row is not told as one",
            CLAIMED,
            "row.state == State.INVALIDATED",
            "False",
            f"{DERIVATION}test_s182_an_invalidated_derivation_still_names_its_source_and_opens_no_text",
        ),
        (
            "a note that left is read",
            f"{ATTEMPTS}_promoted",
            ", state=NoteState.PROMOTED",
            "",
            f"{BORDERS}test_a_note_that_left_past_every_trigger_is_not_embedded[state*",
        ),
        (
            "the note's version is not compared",
            CLAIMED,
            "note.lifecycle_version != row.note_lifecycle_version or",
            "",
            f"{BORDERS}test_a_note_that_left_past_every_trigger_is_not_embedded[lifecycle*",
        ),
        (
            "the text is not compared with what was prepared",
            CLAIMED,
            "not canonical.same(canonical.text_digest(note.text), row.text_digest)",
            "False",
            f"{BORDERS}test_a_text_that_is_not_what_was_prepared_is_not_embedded",
        ),
        (
            "what is complete is embedded again",
            CLAIMED,
            "row.state == State.COMPLETE",
            "False",
            f"{DERIVATION}test_s162_a_complete_derivation_is_told_again_and_not_embedded_again",
        ),
        (
            "a failed attempt is taken up without being asked to",
            CLAIMED,
            "if attempt.retry else []",
            "if True else []",
            f"{DERIVATION}test_s172_an_embedder_that_fails_leaves_a_code_and_nothing_tries_again",
        ),
        (
            "a live attempt is taken",
            CLAIMED,
            " AND (d.deadline IS NULL OR d.deadline <= c.now)",
            " ",
            f"{DERIVATION}test_a_live_attempt_cannot_be_taken_even_by_a_retry",
        ),
        (
            "every token is the same",
            CLAIMED,
            "token = uuid4()",
            "token = UUID(int=1)",
            f"{DERIVATION}test_s169_only_a_retry_takes_an_expired_attempt_up_and_the_first_is_fenced",
        ),
        (
            "the same derivation twice in one call",
            f"{ATTEMPTS}_bounded",
            "len({attempt.derivation_id for attempt in attempts}) != len(attempts)",
            "False",
            f"{BORDERS}test_a_call_names_each_derivation_once_and_a_version_that_can_be",
        ),
    ),
    Fault(
        "semantic claim: the row version is not compared",
        Together(
            (
                Code(CLAIMED, "row.row_version != attempt.expected_row_version", "False"),
                Code(CLAIMED, "d.row_version = %s AND d.state", "%s::int IS NOT NULL AND d.state"),
            )
        ),
        (SEEN_VERSION,),
    ),
    # The generation of a held namespace is its own, so each of these falls only with the comparison of both.
    *(
        Fault(
            f"semantic {part}: a row of another namespace is taken",
            Together(
                (
                    Code(finding, "namespace=namespace, ", ""),
                    Code(judging, "row.generation_id != generation.id", "False"),
                )
            ),
            (ELSEWHERE,),
        )
        for part, finding, judging in (
            ("claim", f"{ATTEMPTS}_Ledger._held", CLAIMED),
            ("request", REQUEST, REQUEST),
        )
    ),
    *_judged(
        "request",
        (
            "a row of another generation is asked for",
            REQUEST,
            "row.generation_id != generation.id",
            "False",
            OF_ANOTHER,
        ),
        (
            "any row version is asked for",
            NEEDED,
            " or record.row_version != attempt.expected_row_version",
            "",
            SEEN_VERSION,
        ),
    ),
    *_judged(
        "completion",
        (
            "the claim is not compared",
            STORED,
            'attempt_token = %s AND attempt = %s"\n                " AND row_version = %s AND',
            '%s::uuid IS NOT NULL AND %s::int IS NOT NULL"\n                " AND %s::int IS NOT NULL AND',
            f"{RACES}[complete x retry after expiry]",
        ),
        (
            "what the trigger finds too late is a defect",
            STORED,
            "!= _NOT_ALLOWED",
            "!= 'LY000'",
            f"{BORDERS}test_one_that_the_database_finds_too_late_is_fenced_alone",
        ),
        (
            "the vector is not read back",
            STORED,
            "not canonical.same(vectors.digest(_read_back(claim.row.id)), vector.digest)",
            "False",
            f"{BORDERS}test_a_vector_that_does_not_come_back_bit_by_bit_is_not_kept",
        ),
        (
            "a failure takes any token's claim",
            f"{ATTEMPTS}_Ledger._fail",
            " AND d.attempt_token = f.token",
            "",
            f"{RACES}[fail x retry after expiry]",
        ),
        (
            "nobody lets go of a claim",
            f"{ATTEMPTS}_Ledger.settle",
            "set(refused) - fenced",
            "False",
            f"{DERIVATION}test_s173_a_lease_that_cannot_be_closed_publishes_nothing",
        ),
    ),
    Fault(
        "semantic completion: the deadline is not compared",
        Together(
            (
                Code(STORED, " AND deadline > clock_timestamp()", ""),
                Function("derivation_zdone", "RAISE EXCEPTION 'attempt_expired' USING ERRCODE = 'LY007';", "NULL;"),
            )
        ),
        (f"{DERIVATION}test_c6_a_completion_that_waited_past_its_deadline_is_refused",),
    ),
)

CHECK: Final = "semantic.embedding:Session._check"
ADMITTED: Final = "semantic.vectors:admitted"
NO_VECTOR: Final = f"{DERIVATION}test_s175_what_is_no_unit_vector_of_the_profile_is_never_stored"
ANOTHER: Final = f"{DERIVATION}test_an_answer_for_something_else_is_refused"

EMBEDDING_FAULTS: Final = (
    *_judged(
        "embedding",
        (
            "more tokens than the model reads",
            "semantic.embedding:Session._fits",
            " and measured.tokens <= most_tokens",
            "",
            f"{DERIVATION}test_s177_a_text_beyond_the_models_window_is_refused_whole",
        ),
        (
            "more bytes than the manifest allows",
            "semantic.embedding:Session._fits",
            "measured.rendered_bytes <= most_bytes and ",
            "",
            f"{BORDERS}test_a_text_of_more_bytes_than_the_manifest_allows_is_refused_whole",
        ),
        (
            "fewer answers than were asked for",
            "semantic.embedding:Session._checked",
            "len(given) != len(asked)",
            "False",
            f"{BORDERS}test_an_embedder_that_gives_less_than_it_was_asked_for_gave_nothing",
        ),
        ("an answer for another item", CHECK, "embedded.item_id == item.item_id", "True", f"{ANOTHER}[lie0]"),
        (
            "an answer of another model",
            CHECK,
            "canonical.same(embedded.binding_digest, self.binding_digest)",
            "True",
            f"{ANOTHER}[lie1]",
        ),
        ("another count of tokens", CHECK, "(embedded.tokens, embedded.rendered_bytes)",
         "(measured.tokens, embedded.rendered_bytes)", f"{ANOTHER}[lie2]"),
        ("another count of bytes", CHECK, "(embedded.tokens, embedded.rendered_bytes)",
         "(embedded.tokens, measured.rendered_bytes)", f"{ANOTHER}[lie3]"),
        (
            "a lease that cannot be closed is not missed",
            "semantic.embedding:_close",
            "raise LeaseCleanupFailed",
            "pass",
            f"{DERIVATION}test_s173_a_lease_that_cannot_be_closed_publishes_nothing",
        ),
        (
            "a driver is not closed",
            "semantic.embedding:_close",
            "for held in (driver, lease)",
            "for held in (lease,)",
            f"{DERIVATION}test_s163_of_two_claims_one_wins_and_both_leases_are_given_back",
        ),
    ),
    *_judged(
        "vector",
        ("any length is admitted", ADMITTED, "abs(length - 1.0) > L2_TOLERANCE", "False",
         f"{VECTORS}test_any_other_length_is_refused*"),
        ("padding may hold anything", ADMITTED, "kept is not None and any(numbers[kept:])", "False",
         f"{VECTORS}test_padding_holds_nothing_but_zeros"),
        ("what is not finite has a digest", "semantic.vectors:digest", "not all(map(math.isfinite, numbers))", "False",
         f"{VECTORS}test_what_is_not_finite_has_no_digest*"),
        ("a number is rounded without a word", "semantic.vectors:packed", "if any(kept != given", "if any(False",
         f"{VECTORS}test_numbers_that_float32_would_round_are_refused"),
        ("bits move on their way back", "semantic.vectors:received", 'if sys.byteorder == "little":', "if False:",
         f"{VECTORS}test_any_bits_come_back_from_postgresql*"),
    ),
    Fault(
        "semantic vector: NaN and any number of dimensions are admitted",
        Together(
            (
                Code(ADMITTED, "not all(map(math.isfinite, numbers))", "False"),
                Code(ADMITTED, "abs(length - 1.0) > L2_TOLERANCE", "False"),
                Code("semantic.vectors:digest", "not all(map(math.isfinite, numbers))", "False"),
            )
        ),
        (f"{NO_VECTOR}[NaN]",),
    ),
    *_judged(
        "lease",
        ("any number is given out", "semantic.leases:_require_room", "len(_held) >= settings.LYCHD_EMBED_LEASES",
         "False", f"{DERIVATION}test_a_caller_without_a_lease_writes_nothing"),
        ("two processes count for themselves", "semantic.leases:_be_alone", "raise LeaseUnavailable from None", "pass",
         f"{LEASES}test_a_child_of_the_one_process_is_another"),
        ("one is given back twice", "semantic.leases:_ProcessLease.close", "self.owner not in _held", "False",
         f"{BORDERS}test_a_lease_is_given_back_once"),
        ("one that ran out is given back", "semantic.leases:_RedisLease.close", "not given_back", "False",
         f"{WORKER}test_a_lease_that_ran_out_makes_room_and_cannot_be_given_back"),
        ("without Redis it is counted in memory", "semantic.leases:take", "in_memory()", "True",
         f"{WORKER}test_s186_without_redis_an_attempt_is_refused_and_never_counted_in_memory"),
    ),
    Fault(
        "semantic lease: what was not begun is not sent back",
        Code(
            "lychd.patience:PatientTask._send_back",
            "self.apply_async(args, kwargs, headers=self.request.headers, retry=False)",
            "pass",
        ),
        ("tests/ground/test_patience.py::test_what_no_lease_was_left_for_goes_back_to_its_queue_once_one_is_free",),
    ),
    Fault(
        "semantic lease: Redis gives out any number",
        Constant("semantic.leases:_TAKE", "then return 0 end", "then return 1 end"),
        (f"{WORKER}test_leases_are_counted_in_redis",),
    ),
)  # fmt: skip

RANK: Final = "semantic.exact:"
UNTRUE: Final = f"{BORDERS}test_a_scan_row_that_the_truth_does_not_bear_out_refuses_the_whole_recall[-0.5"
REQUIRED: Final = "semantic.operations.resolution:_require_vector"
S221: Final = f"{RECALL}test_s221_a_derivation_that_is_not_the_one_that_was_ranked"
ELSE: Final = f"{BORDERS}test_a_derivation_of_something_else_than_was_ranked_resolves_nothing"


def recall_faults() -> Iterator[Fault]:
    """Each judgement of a recall and of a resolution by meaning."""
    yield from _judged(
        "recall",
        (
            "a receipt that is there is not joined",
            "semantic.operations.recall:_final",
            "winner is not None",
            "False",
            f"{BORDERS}test_who_finds_a_receipt_after_embedding_joins_it_though_the_generation_is_gone",
        ),
        (
            "a receipt that is there is not replayed",
            "semantic.operations.recall:_preflight",
            "earlier is not None",
            "False",
            f"{RECALL}test_s206_asked_again_the_same_receipt_and_no_embedding",
        ),
        (
            "a generation that is gone is not looked for first",
            "semantic.operations.recall:_preflight",
            "standing(namespace, configured)",
            "Generation.objects.filter(namespace=namespace).first() or _Seen(uuid4(), 1)",
            S202,
        ),
        (
            "a generation that was retired meanwhile is searched",
            "semantic.operations.recall:_final",
            "standing(namespace, configured)",
            "Generation.objects.get(id=seen.id); seen = _Seen(generation.id, generation.version)",
            f"{RECALL}test_s211_a_generation_retired_during_inference_refuses",
        ),
        (
            "a generation that moved meanwhile is searched",
            "semantic.operations.recall:_final",
            "(generation.id, generation.version) != (seen.id, seen.version)",
            "False",
            f"{BORDERS}test_a_generation_that_moved_during_inference_refuses",
        ),
        (
            "what a conflict has cost is not told",
            "semantic.operations.recall:_final",
            'refusal.extra.setdefault("caller_execution", execution)',
            "pass",
            f"{RECALL}test_s210_another_request_under_the_same_identity_conflicts_and_tells_what_was_spent",
        ),
        (
            "the threshold may be anything",
            "semantic.requests:SemanticRecall.__post_init__",
            'check.fault("/min_cosine", "a finite number from -1 to 1")',
            "pass",
            f"{RECALL}test_s203_the_threshold_is_a_number_from_minus_one_to_one*",
        ),
    )
    for what, old, case in (
        ("whose note left", "note.state = 'promoted' AND", "not promoted"),
        ("of another version", "AND note.lifecycle_version = derivation.note_lifecycle_version", "another version"),
        ("of another text", "AND note.text_digest = derivation.text_digest", "another text"),
        ("of another generation", "AND derivation.generation_id = %(generation)s::uuid", "another generation"),
    ):
        yield Fault(
            f"semantic rank: a vector {what} is eligible",
            Constant(f"{RANK}_RANK_WITHIN", old, ""),
            (f"{UNTRUE}-{case}]",),
        )
    yield Fault(
        "semantic rank: a vector whose text is gone is eligible",
        Constant(f"{RANK}_RANK_FIRST", "AND note.text IS NOT NULL", ""),
        (f"{BORDERS}test_a_text_that_is_gone_is_not_found_even_if_no_constraint_minds",),
    )
    yield Fault(
        "semantic rank: a vector of another namespace is eligible",
        Together(
            (
                Constant(f"{RANK}_RANK_WITHIN", "AND derivation.namespace_id = %(namespace)s::bigint", ""),
                Constant(f"{RANK}_RANK_WITHIN", "AND note.namespace_id = derivation.namespace_id", ""),
            )
        ),
        (f"{UNTRUE}-another namespace]",),
    )
    yield Fault(
        "semantic rank: a vector that is not complete is eligible",
        Together(
            (
                Constant(f"{RANK}_RANK_WITHIN", "AND derivation.state = 'complete'", ""),
                Constant(f"{RANK}_RANK_WITHIN", "AND derivation.vector IS NOT NULL", ""),
            )
        ),
        (f"{UNTRUE}-not complete]",),
    )
    yield from _judged(
        "rank",
        (
            "what has no truth behind it is left out without a word",
            f"{RANK}rank",
            "if found[0][1]:",
            "if False:",
            f"{UNTRUE}-no derivation]",
        ),
        (
            "the first pass has no bound",
            f"{RANK}rank",
            "bound * slack",
            "0.0",
            f"{EXACTNESS}test_two_that_half_precision_turns_around_are_put_right",
        ),
        (
            "the bound is nothing",
            f"{RANK}error_bound",
            "return first_pass + score",
            "return 0.0",
            f"{EXACTNESS}test_the_bound_holds_for_every_row",
        ),
    )
    covered = "test_s200_coverage_counts_what_has_a_vector_and_the_nearest_come_first"
    for what, name, old, new, test in (
        (
            "NaN is no finding",
            "_RANK_FIRST",
            "OR score = 'NaN'",
            "",
            "test_c15_a_zero_vector_forced_in_is_refused_loudly_and_never_listed",
        ),
        (
            "equal scores stand in any order",
            "_RANK_FIRST",
            "ORDER BY score DESC, note_id",
            "ORDER BY score DESC, note_id DESC",
            "test_s219_equal_scores_stand_in_the_order_of_their_identities",
        ),
        (
            "what is not near enough is taken",
            "_RANK_WITHIN",
            "WHERE score >= %(min_cosine)s::float8 AND",
            "WHERE",
            "test_the_threshold_is_exact",
        ),
        (
            *("coverage is not that of the generation", "_COVERAGE"),
            *("generation_id = %s), 0", "generation_id <> %s), 0", covered),
        ),
        ("coverage is not that of the namespace", "_COVERAGE", "namespace_id = %s", "namespace_id <> %s", covered),
    ):
        yield Fault(f"semantic rank: {what}", Constant(f"{RANK}{name}", old, new), (RECALL + test,))
    yield from _judged(
        "resolution",
        *(
            (what, REQUIRED, old, "True", test)
            for what, old, test in (
                ("any row version", 'row.row_version == chosen["derivation_row_version"]', f"{S221}[row_version*"),
                ("any vector digest", 'row.vector_digest == chosen["vector_digest"]', f"{S221}[vector_digest*"),
                (
                    "any version of the note",
                    'row.note_lifecycle_version == chosen["lifecycle_version"]',
                    f"{ELSE}[note_lifecycle_version*",
                ),
                ("any text digest", 'row.text_digest == chosen["text_digest"]', f"{ELSE}[text_digest*"),
                ("any note", 'str(row.note_id) == chosen["note_id"]', f"{ELSE}[note_id*"),
            )
        ),
        (
            "the vector's bits are not looked at",
            REQUIRED,
            'stored.get(row.id) != chosen["vector_digest"]',
            "False",
            f"{S221}[change3-*",
        ),
        (
            "the vectors are not looked at",
            "semantic.operations.resolution:resolve",
            "_require_vectors(namespace, standing(namespace, configured), receipt)",
            "pass",
            f"{RECALL}test_s221_a_retired_generation_resolves_nothing",
        ),
        (
            "a receipt of words is taken",
            "semantic.operations.resolution:resolve",
            "SEMANTIC_SCHEMA",
            "row.schema if row else 2",
            f"{RECALL}test_s222_each_reader_refuses_the_other_ones_receipt",
        ),
    )
    yield Fault(
        "semantic resolution: a receipt of another generation",
        Together(
            (
                Code(f"{REQUIRED}s", 'receipt["generation"] != now', "False"),
                Code(f"{REQUIRED}s", "generation=generation, ", ""),
            )
        ),
        (f"{RECALL}test_s221_another_configured_generation_resolves_nothing_of_the_first",),
    )
    yield Fault(
        "semantic resolution: a derivation that is not complete",
        Together(
            (
                Code(REQUIRED, "row.state == State.COMPLETE", "True"),
                Code(REQUIRED, 'row.vector_digest == chosen["vector_digest"]', "True"),
            )
        ),
        (f"{S221}[change2-*",),
    )


MESSAGES: Final = (
    Fault(
        "worker: a message that was altered is done",
        Code(
            "semantic.tasks:_is_ours",
            "RecursionError):\n        return False",
            "RecursionError):\n        return True",
        ),
        (f"{SIGNED}test_one_that_was_altered_is_refused_in_one_line_without_its_words[another subject]",),
    ),
    Fault(
        "worker: who is acted for is not signed",
        Code("semantic.tasks:_signed", '"arguments": told', '"arguments": {**told, "subject": ""}'),
        (f"{SIGNED}test_one_that_was_altered_is_refused_in_one_line_without_its_words[another subject]",),
    ),
    Fault(
        "worker: a signature of every task is good for this one",
        Together(
            (
                Code("semantic.tasks:_signed", '"task": NAME, ', ""),
                Code("semantic.tasks:_is_ours", "salt=NAME", "salt='worker'"),
                Code("semantic.tasks:message", "salt=NAME", "salt='worker'"),
            )
        ),
        (f"{SIGNED}test_the_signature_is_one_of_this_task_and_of_this_key",),
    ),
    Fault(
        "worker: a key of before is forgotten at once",
        Code("semantic.tasks:_is_ours", "Signer(salt=NAME)", "Signer(salt=NAME, fallback_keys=[])"),
        (f"{SIGNED}test_a_message_of_the_key_before_is_good_as_long_as_that_is_named",),
    ),
)

FAULTS: Final = (
    *MESSAGES,
    *triggers(),
    *constraints(),
    *rules(),
    *VECTOR_RULES,
    *DATABASE,
    *holds(),
    *rebuilds(),
    *questions(),
    *GENERATION_FAULTS,
    *ATTEMPT_FAULTS,
    *EMBEDDING_FAULTS,
    *recall_faults(),
)
