"""Every fault that is planted, what it takes out, and the test that must notice.

`covers` names the places in the code that a fault answers for; tests/faults/test_registry_complete.py finds the places
itself and compares. A test ending in `*` stands for all whose names begin so.
"""

from collections.abc import Iterator
from typing import Final

from tests.faults import meaning
from tests.faults.planting import Code, Constant, Constraint, Fault, Function, Gutted, Privilege, Rule, Together, Value

LOOSE: Final = "__import__('tests.faults.loose').faults.loose."


TRIGGERS = "tests/database/test_triggers.py::"
CONSTRAINTS = "tests/database/test_constraints.py::"
BOUNDS = "tests/database/test_transactions.py::"
PRIVILEGES = "tests/database/test_privileges.py::"
HOLDS = "tests/races/test_holds.py::"
PAIRS = "tests/races/test_pairs.py::test_every_schedule_ends_as_one_order_of_the_two_does"
EVERY_PAIR = "tests/races/test_every_pair.py::test_a_pair_of_which_one_is_interrupted_once_ends_as_one_order_does"
WITHDRAWN = "tests/races/test_withdrawals.py::test_a_permission_that_ends_refuses_from_the_next_check_point_on"
SCENARIOS = "tests/scenarios/"
LIFECYCLE = "tests/operations/test_lifecycle.py::"
RECEIPTS = "tests/operations/test_receipts.py::"
FORGED = "tests/operations/test_forged.py::"
BATCHES = "tests/operations/test_batches.py::"
BAD_INPUTS = "tests/api/test_bad_inputs.py::"
WHO_ASKS = "tests/api/test_who_asks.py::"

# --- the catalogue ---------------------------------------------------------------------------------------------------

SHARED_RULES: Final = {
    "a_nslock": (
        "test_a_write_beside_another_hold_is_refused_at_once[{table}]",
        "test_a_shared_hold_writes_a_receipt_and_nothing_else[{table}]",
    ),
    "space": ("test_every_row_of_a_namespace_gets_its_space_from_the_namespace",),
    "nodelete": ("test_nothing_of_the_archive_can_be_deleted",),
    "append": ("test_a_row_that_is_written_once_stays_as_it_was",),
    "truth": ("test_a_receipt_is_written_in_its_form_alone",),
    "history": ("test_every_form_of_a_configured_binding_is_kept",),
    "postings": ("test_words_come_with_promotion_and_leave_with_it_even_by_raw_sql",),
}
OWN_RULE: Final = "test_a_trigger_refuses_what_breaks_its_rule_and_nothing_beside_it[{table}-{rule}-*"

# Of each table whose rows say something of themselves, a column by which it is noticed that nobody checks them.
TRUTHS: Final = {
    "archive_binding_migration": "new_binding_digest",
    "archive_flag": "lifecycle_version",
    "archive_intake_request": "request_digest",
    "archive_lifecycle_event": "id",
    "archive_namespace": "binding_digest",
    "archive_note": "text_digest",
    "archive_source": "created_at",
    "lychd_binding_history": "namespace_key",
}
STEPS: Final = "tests/database/test_truths.py::test_a_step_says_nothing_false_of_itself*"
FOREIGN: Final = "tests/database/test_truths.py::test_a_foreign_value_is_refused_by_name_or_has_no_effect[{}-{}]"

RULES: Final = {
    "archive_binding_migration": ("a_nslock", "space", "nodelete", "append", "truth"),
    "archive_flag": ("a_nslock", "space", "nodelete", "append", "same_namespace", "truth"),
    "archive_intake_request": ("a_nslock", "nodelete", "append", "same_namespace", "truth"),
    "archive_lifecycle_event": ("a_nslock", "nodelete", "append", "event_true", "same_namespace", "truth"),
    "archive_memory_space": ("nodelete",),
    "archive_namespace": ("space", "binding", "nodelete", "truth"),
    "archive_note": (
        *("a_nslock", "nodelete", "note_identity", "note_text", "note_edge", "note_event", "postings"),
        *("same_namespace", "truth"),
    ),
    "archive_recall": ("a_nslock", "space", "nodelete", "append", "truth"),
    "archive_source": ("a_nslock", "space", "nodelete", "append", "truth"),
    "lychd_binding": ("nodelete", "history"),
    "lychd_binding_history": ("append", "nodelete", "truth"),
    "lychd_grant": ("grant", "nodelete"),
    "lychd_principal": ("principal", "nodelete"),
    "lychd_token": ("token", "nodelete"),
}

UNIQUES: Final = {
    "archive_flag": ("flag_once",),
    "archive_intake_request": ("intake_request_once",),
    "archive_lifecycle_event": ("event_once_per_version",),
    "archive_namespace": ("namespace_key",),
    "archive_note": ("note_revision_once", "note_one_promoted_per_source"),
    "archive_recall": ("recall_request_once",),
    "archive_source": ("source_once",),
    "lychd_binding": ("binding_namespace",),
    "lychd_principal": ("principal_subject", "lychd_principal_user_id_key"),
    "lychd_token": ("token_digest",),
}
CHECKS: Final = {
    "archive_corpus": ("corpus_notes_not_negative", "corpus_length_not_negative"),
    "archive_flag": ("flag_reason",),
    "archive_lifecycle_event": (
        *("event_version_step", "event_cause", "event_reason", "event_superseded_names_its_cause"),
    ),
    "archive_memory_space": (*("space_kind", "space_lifecycle", "space_generation", "space_shared_stays_active"),),
    "archive_namespace": ("namespace_public", "namespace_lexical_state"),
    "archive_note": ("note_text_until_revoked", "note_state", "note_version", "note_size", "note_public"),
    "archive_recall": ("recall_schema", "recall_receipt_schema"),
}


def triggers() -> Iterator[Fault]:
    """Each trigger of the catalogue made to do nothing."""
    for table, rules in RULES.items():
        for rule in rules:
            tests = tuple(
                TRIGGERS + test.format(table=table, rule=rule) for test in SHARED_RULES.get(rule, (OWN_RULE,))
            )
            if rule == "truth" and table in TRUTHS:
                tests = (FOREIGN.format(table, TRUTHS[table]),)
            yield Fault(
                f"trigger {table}.{rule}",
                Gutted(table, rule),
                tests,
                (f"trigger {table}.{rule}",),
            )


def constraints() -> Iterator[Fault]:
    """Each uniqueness and each check of the catalogue dropped."""
    second = "test_a_second_of_what_is_unique_is_refused_and_another_is_not"
    beyond = "test_a_check_refuses_and_lets_its_neighbour_through"
    for kinds, test in ((UNIQUES, second), (CHECKS, beyond)):
        for table, names in kinds.items():
            for name in names:
                yield Fault(
                    f"constraint {table}.{name}",
                    Constraint(table, name),
                    (f"{CONSTRAINTS}{test}[{table}-{name}]",),
                    (f"constraint {table}.{name}",),
                )


DATABASE: Final = (
    Fault(
        "trigger package: the bypass works again",
        Function("_pgtrigger_should_ignore", "RETURN FALSE", "RETURN current_setting('pgtrigger.ignore', true) <> ''"),
        (f"{PRIVILEGES}test_the_bypass_of_the_trigger_package_passes_no_trigger",),
    ),
    *(
        Fault(
            f"privilege: the service may {privilege} {table}",
            Privilege(privilege, table),
            (f"{PRIVILEGES}test_the_grants_are_the_committed_list_in_both_directions",),
        )
        for privilege, table in (
            ("DELETE", "archive_note"),
            ("TRUNCATE", "archive_recall"),
            ("INSERT", "archive_posting"),
            ("UPDATE", "archive_corpus"),
            ("DELETE", "lychd_grant"),
        )
    ),
    Fault(
        "truth: an event keeps the number that it brings",
        Rule("archive_lifecycle_event", "truth", "NEW.id := nextval('public.archive_lifecycle_event_id_seq');", ""),
        (
            FOREIGN.format("archive_lifecycle_event", "id"),
            "tests/database/test_truths.py::test_a_number_drawn_early_is_not_the_number_of_an_event",
        ),
    ),
    Fault(
        "truth: a step is of any time",
        Rule("archive_note", "truth", "IF NEW.state_changed_at NOT", "IF false AND NEW.state_changed_at NOT", 2),
        (STEPS,),
    ),
    Fault(
        "truth: a note is superseded by one of another source",
        Rule("archive_note", "truth", "AND n.source_id = NEW.source_id AND n.id <> NEW.id", ""),
        (STEPS,),
    ),
    Fault(
        "truth: a text may show nothing",
        Rule("archive_note", "truth", "IF NEW.text !~", "IF false AND NEW.text !~"),
        (FOREIGN.format("archive_note", "text"),),
    ),
    Fault(
        "truth: any binding may be named",
        Rule("archive_note", "truth", "IF NEW.policy_revision <>", "IF false AND NEW.policy_revision <>"),
        (FOREIGN.format("archive_note", "policy_revision"),),
    ),
    Fault(
        "truth: any request may say that it made the note",
        Rule("archive_intake_request", "truth", "IF NEW.created_note <>", "IF false AND NEW.created_note <>"),
        (FOREIGN.format("archive_intake_request", "created_note"),),
    ),
    Fault(
        "postings: words stay when a note leaves",
        Function("archive_note_postings", "IF was THEN", "IF was AND false THEN"),
        ("tests/lexical/test_postings.py::test_words_vanish_with_eligibility*",),
    ),
    Fault(
        "postings: a promoted note gets none",
        Function("archive_note_postings", "IF is_now THEN", "IF is_now AND false THEN"),
        ("tests/lexical/test_postings.py::test_only_a_promoted_note_has_words",),
    ),
    Fault(
        "postings: a candidate gets them",
        Function("archive_note_postings", "is_now := NEW.state = 'promoted'", "is_now := NEW.state <> 'revoked'"),
        ("tests/lexical/test_postings.py::test_only_a_promoted_note_has_words",),
    ),
    Fault(
        "postings: the corpus is not counted",
        Function("archive_note_postings", "corpus.notes + step_notes", "corpus.notes"),
        ("tests/lexical/test_postings.py::test_any_walk_through_the_states_keeps_postings_and_figures_true",),
    ),
    Fault(
        "binding: an update that changes it moves the lexical state too",
        Function(
            "binding",
            "IF NEW.lexical_state IS DISTINCT FROM\n                   (CASE WHEN"
            " NEW.text_configuration = OLD.text_configuration THEN OLD.lexical_state\n                         "
            "ELSE 'rebuilding' END)\n                   OR NEW.lexer_fingerprint IS DISTINCT FROM OLD.lexer_fingerprint"
            " THEN",
            "IF NEW.text_configuration IS DISTINCT FROM OLD.text_configuration"
            " AND NEW.lexical_state <> 'rebuilding' THEN",
        ),
        (TRIGGERS + OWN_RULE.format(table="archive_namespace", rule="binding"),),
    ),
    Fault(
        "rebuild: its halves ask for no hold",
        Function("archive_held_for_rebuild", "IS DISTINCT FROM 'exclusive'", "= 'never'"),
        (f"{PRIVILEGES}test_what_is_called_with_the_owners_rights_asks_for_the_hold",),
    ),
)

# --- holds -----------------------------------------------------------------------------------------------------------

A_CHANGE: Final = f"{HOLDS}test_a_change_holds_its_namespace_against_everybody"
A_RECALL: Final = f"{HOLDS}test_a_recall_holds_its_namespace_against_changes_alone"


def _unheld(where: str, call: str, part: str, test: str, *, before: str = "", place: str = "") -> Fault:
    return Fault(
        f"hold: {where.split('.')[-1]} {call}{place} holds nothing",
        Code(where, f"{before}{call}(", f"{before}{LOOSE}{call}("),
        (f"{test}[{part}]",),
        (f"{where} {call}{place}",),
    )


UNHELD: Final = (
    _unheld("archive.operations.flag:flag", "locked", "flag", A_CHANGE),
    _unheld("archive.operations.intake:intake", "locked", "intake", A_CHANGE),
    _unheld("archive.operations.intake:_admit_slice", "locked", "intake of a batch", A_CHANGE),
    _unheld("archive.operations.transition:_move", "locked", "promote roses/2", A_CHANGE),
    _unheld("archive.operations.transition:_move_slice", "locked", "transitions of a batch", A_CHANGE),
    _unheld("archive.operations.recall:recall", "shared", "recall", A_RECALL),
    _unheld("archive.operations.resolution:resolve", "shared", "resolve", A_RECALL),
    _unheld("archive.operations.review:review", "shared", "review", A_RECALL),
    _unheld("archive.operations.migration:migrate", "held", "migrate at last", A_CHANGE),
    _unheld("archive.operations.rebuild:rebuild_lexical", "held", "rebuild", A_CHANGE),
    _unheld(
        "archive.operations.rebuild:_passed",
        *("held", "rebuild", A_CHANGE),
        before="try:\n            with ",
    ),
    _unheld(
        "archive.operations.rebuild:_passed",
        *("held", "rebuild", A_CHANGE),
        before="progress(done, expected)\n    with ",
        place=" 2",
    ),
    Fault(
        "hold: a read looks at no one moment",
        Code("inspection.reads:_read", "snapshot(", f"{LOOSE}snapshot("),
        (f"{SCENARIOS}test_i_inspection.py::test_s137_every_read_is_read_only_and_writes_nothing*",),
        ("inspection.reads:_read snapshot",),
    ),
    Fault(
        "hold: the desk looks at no one moment",
        Code("archive.operations.desk:desk", "snapshot(", f"{LOOSE}snapshot("),
        (f"{SCENARIOS}test_i_inspection.py::test_s137_every_read_is_read_only_and_writes_nothing*",),
        ("archive.operations.desk:desk snapshot",),
    ),
)

HELD: Final = (
    *(
        Fault(
            f"hold: {kind} does not queue",
            Code(f"archive.transactions:{kind}", queue, "pass"),
            (f"{test}[{part}]",),
            (f"archive.transactions:{kind} _queue",),
        )
        for kind, queue, test, part in (
            ("locked", "_queue(binding.namespace, shared=False)", A_CHANGE, "promote roses/2"),
            ("shared", "_queue(binding.namespace, shared=True)", A_RECALL, "recall"),
            ("held", "_queue(key, shared=False)", A_CHANGE, "migrate at last"),
        )
    ),
    Fault(
        "hold: a change queues as a recall does",
        Code("archive.transactions:locked", "shared=False", "shared=True"),
        (f"{A_CHANGE}[promote roses/2]",),
    ),
    Fault(
        "hold: a recall queues as a change does",
        Code("archive.transactions:shared", "shared=True", "shared=False"),
        (f"{A_RECALL}[recall]",),
    ),
    Fault(
        "hold: a change locks no row",
        Code("archive.transactions:locked", '"FOR UPDATE"', '""'),
        (f"{A_CHANGE}[promote roses/2]",),
        ("archive.transactions:locked _row",),
    ),
    Fault(
        "hold: a recall locks no row",
        Code("archive.transactions:shared", '"FOR SHARE"', '""'),
        (f"{A_RECALL}[recall]",),
        ("archive.transactions:shared _row",),
    ),
    Fault(
        "hold: a recall locks the row exclusively",
        Code("archive.transactions:shared", '"FOR SHARE"', '"FOR UPDATE"'),
        (f"{A_RECALL}[recall]",),
    ),
    Fault(
        "hold: a migration locks no row",
        Code("archive.transactions:held", '"FOR UPDATE"', '""'),
        (f"{A_CHANGE}[migrate at last]",),
        ("archive.transactions:held _row",),
    ),
    Fault(
        "hold: a recall says that it is a change",
        Code("archive.transactions:shared", '_durable("shared")', '_durable("exclusive")'),
        (f"{HOLDS}test_under_a_shared_hold_nothing_but_a_receipt_is_written",),
    ),
    Fault(
        "hold: intakes of one revision race without it",
        Code("archive.operations.intake:intake", "locked(", f"{LOOSE}locked("),
        (f"{PAIRS}[intake x intake of other bytes*",),
    ),
    Fault(
        "hold: promotions of one source race without it",
        Code("archive.operations.transition:_move", "locked(", f"{LOOSE}locked("),
        (f"{PAIRS}[promote roses/2 x promote roses/3]",),
    ),
    Fault(
        "hold: a recall races with a revocation without it",
        Code("archive.operations.recall:recall", "shared(", f"{LOOSE}shared("),
        (f"{PAIRS}[recall x revoke roses/1]",),
    ),
    Fault(
        "hold: grants are carried over while they are withdrawn",
        Code("archive.operations.migration:_carry", '.select_for_update(of=("self",))', ""),
        (f"{EVERY_PAIR}[binding migration x grant withdrawal]",),
        ("archive.operations.migration:_carry select_for_update",),
    ),
    Fault(
        "hold: a withdrawal looks once, before a migration that it waits for has carried grants over",
        Code("archive.operations.host:withdraw", "while found", "if found"),
        (f"{EVERY_PAIR}[binding migration x grant withdrawal]",),
    ),
    Fault(
        "hold: two withdrawals end the same grant",
        Code("archive.operations.host:withdraw", "standing.select_for_update()", "standing"),
        (f"{EVERY_PAIR}[grant withdrawal x grant withdrawal]",),
        ("archive.operations.host:withdraw select_for_update",),
    ),
    Fault(
        "hold: the notes of a decision are not locked",
        Code("archive.operations.transition:_held", '.select_for_update(of=("self",))', ""),
        (f"{BOUNDS}test_notes_are_held_in_ascending_order_whatever_order_they_are_named_in",),
        ("archive.operations.transition:_held select_for_update",),
    ),
    Fault(
        "hold: the notes of a decision are locked in any order",
        Code("archive.operations.transition:_held", '.order_by("id")', ""),
        (f"{BOUNDS}test_notes_are_held_in_ascending_order_whatever_order_they_are_named_in",),
    ),
    Fault(
        "savepoint: a unique violation ends the intake",
        Code("archive.operations.intake:intake", "savepoint()", f"{LOOSE}savepoint()"),
        (f"{HOLDS}test_a_unique_violation_inside_an_intake_is_judged_once_more",),
        ("archive.operations.intake:intake savepoint",),
    ),
    Fault(
        "recall: two publications of one identity collide",
        Code("archive.publication:publish", " ON CONFLICT (namespace_id, request_id) DO NOTHING", ""),
        (f"{PAIRS}[recall x recall]",),
    ),
)

# --- transactions ----------------------------------------------------------------------------------------------------

LIMITS_TEST: Final = f"{BOUNDS}test_each_transaction_has_its_four_limits_and_the_session_keeps_its_own[locked]"

TRANSACTIONS: Final = (
    *(
        Fault(
            f"transaction: no {name} limit",
            Code("archive.transactions:_bound", f'str(limits["{name}"])', "'0'"),
            (LIMITS_TEST,),
        )
        for name in ("statement", "lock", "idle", "transaction")
    ),
    Fault(
        "transaction: limits outlive it",
        Constant("archive.transactions:_BOUNDS", "'lock_timeout', %s, true", "'lock_timeout', %s, false"),
        (LIMITS_TEST,),
    ),
    Fault(
        "transaction: it may stand inside another",
        Code("archive.transactions:_durable", "atomic(durable=True)", "atomic()"),
        (f"{BOUNDS}test_an_operation_inside_a_transaction_of_the_caller_is_refused",),
    ),
    Fault(
        "transaction: a snapshot may write",
        Code("archive.transactions:_look_only", "read_only = True", "read_only = False"),
        (f"{BOUNDS}test_a_snapshot_is_read_only_and_the_database_says_so",),
    ),
    Fault(
        "transaction: a snapshot sees many moments",
        Code("archive.transactions:_look_only", "REPEATABLE_READ", "READ_COMMITTED"),
        (f"{BOUNDS}test_a_snapshot_sees_one_moment",),
    ),
    Fault(
        "binding: not read again under the hold",
        Code("archive.transactions:_compare", "bindings.source().find(binding.namespace) != binding", "False"),
        (f"{SCENARIOS}test_f_binding.py::test_s089_an_act_that_began_before_the_disabling_ends_in_a_mismatch",),
        ("archive.transactions:_compare find",),
    ),
    Fault(
        "binding: the retained one is not compared",
        Code(
            "archive.transactions:_compare",
            "(namespace.binding_digest, namespace.text_configuration) != (binding.digest, binding.text_configuration)",
            "False",
        ),
        (f"{SCENARIOS}test_f_binding.py::test_s081_under_another_owner_all_existing_material_refuses*",),
    ),
    Fault(
        "binding: the text configuration is not compared",
        Code(
            "archive.transactions:_compare",
            "(namespace.binding_digest, namespace.text_configuration) != (binding.digest, binding.text_configuration)",
            "namespace.binding_digest != binding.digest",
        ),
        (f"{SCENARIOS}test_f_binding.py::test_s082_so_it_does_under_another_policy_or_text_configuration*",),
    ),
    Fault(
        "binding: a migration does not read it again",
        Code("archive.operations.migration:migrate", "bindings.source().find(caller.namespace) != caller.binding", "0"),
        (f"{HOLDS}test_a_migration_is_refused_when_the_configuration_moved_on_under_it",),
        ("archive.operations.migration:migrate find",),
    ),
    Fault(
        "namespace: an absent one is made by a refused intake",
        Code("archive.operations.intake:_admit_slice", "atomic or len(refusals) == len(run)", "atomic"),
        ("tests/faults/test_borders.py::test_a_batch_that_is_refused_under_the_hold_makes_no_namespace",),
    ),
)

# --- authority -------------------------------------------------------------------------------------------------------


def _unasked(where: str, point: str, part: str, asked: str | None = None, new: str = "None") -> Fault:
    call = "require" if asked is None else asked.split("(")[0].split(".")[-1]
    return Fault(
        f"authority: {where.split('.')[-1]} does not ask at {point}",
        Code(where, asked or f"question.require(Point.{point})", new),
        (f"{WITHDRAWN}[{part}]",),
        (f"{where} {call} {point}",),
    )


UNASKED: Final = (
    *(
        _unasked(where, point, part)
        for where, part in (
            ("archive.operations.flag:flag", "flag"),
            ("archive.operations.transition:_move", "promote roses/2"),
            ("archive.operations.recall:recall", "recall"),
            ("archive.operations.resolution:resolve", "resolve"),
            ("archive.operations.review:review", "review"),
            ("archive.operations.migration:migrate", "migrate at last"),
        )
        for point in ("A0", "A1", "A2")
    ),
    *(
        _unasked("archive.operations.intake:intake", point, "intake", f"proposed.question.require(Point.{point})")
        for point in ("A0", "A1", "A2")
    ),
    *(
        Fault(
            f"authority: desk does not ask at {point}",
            Code("archive.operations.desk:desk", f"_require(questions, Point.{point}{more})", instead),
            (f"{WITHDRAWN}[desk]",),
        )
        for point, more, instead in (
            ("A0", ", further", "[True]"),
            ("A2", ", [*(question for _, question in offered), *further]", "[True] * (len(offered) + len(further))"),
        )
    ),
    Fault(
        "authority: what stands beside the desk is shown without its permission",
        Code("archive.operations.desk:desk", "not (may_look and answers[-1])", "False"),
        (
            "tests/pages/test_neighbours.py::test_a_permission_that_ends_while_the_page_is_made_takes_the_neighbours_with_it",
        ),
    ),
    Fault(
        "authority: what stands beside the desk is read before it is allowed",
        Code("archive.operations.desk:desk", "beside is not None and may_look and", "beside is not None and"),
        ("tests/pages/test_neighbours.py::test_whoever_may_not_inspect_derivations_is_told_nothing_of_them",),
    ),
    Fault(
        "authority: the playground tells of vectors without their permission",
        Code("inspection.playground:explain", "management.may(caller, Action.INSPECT_DERIVATION)", "True"),
        ("tests/pages/test_search.py::test_what_was_not_derived_and_what_was_for_a_retired_generation",),
    ),
    Fault(
        "form: a field with a name outside ASCII is not looked at",
        Code("archive.curation.posted:unknown", "- known)", "- known) if name.isascii()"),
        ("tests/pages/test_people.py::test_a_field_that_nobody_asked_for_is_refused",),
    ),
    Fault(
        "authority: one of the desk's two questions is enough",
        Code("archive.operations.desk:_require", "not all(", "not any("),
        ("tests/pages/test_review.py::test_whoever_may_review_and_not_inspect_has_no_queue_either",),
        ("archive.operations.desk:_require decide",),
    ),
    *(_unasked("inspection.reads:_read", point, "list notes") for point in ("A0", "A2")),
    _unasked("archive.operations.intake:intake_many", "A0", "intake of a batch", "_ask(proposals, Point.A0, answers)"),
    _unasked(
        "archive.operations.intake:_admit_slice",
        *("A1", "intake of a batch", "authority.decide([one.question.asked for one in run], Point.A1)"),
        "[True] * len(run)",
    ),
    _unasked(
        "archive.operations.intake:intake_many",
        *("A2", "intake of a batch"),
        "_ask([one for one in proposals if answers[one.position].result is not None], Point.A2, answers)",
    ),
    _unasked(
        "archive.operations.transition:transition_many",
        *("A0", "promotions of a batch", "_ask(list(enumerate(questions)), Point.A0, answers)"),
    ),
    _unasked(
        "archive.operations.transition:_move_slice",
        *("A1", "promotions of a batch"),
        "authority.decide([questions[place].asked for place in places], Point.A1)",
        "[True] * len(places)",
    ),
    _unasked(
        "archive.operations.transition:transition_many",
        *("A2", "promotions of a batch"),
        "_ask([(place, questions[place]) for place, answer in answers.items() if answer.result], Point.A2, answers)",
    ),
    _unasked(
        "inspection.discovery:_discovered",
        *("A0", "discover the configuration"),
        "authority.decide([question(caller).asked for caller in callers], Point.A0)",
        "[True] * len(callers)",
    ),
    _unasked(
        "inspection.discovery:_discovered",
        *("A2", "discover the configuration"),
        "authority.decide([question(caller).asked for caller in shown], Point.A2)",
        "[True] * len(shown)",
    ),
    *(
        Fault(
            f"authority: projection does not ask at {point}",
            Code("inspection.interface:projection", f"question.require(Point.{point})", "None"),
            (f"{SCENARIOS}test_i_interface.py::test_s132_authority_is_asked_before_and_after*",),
            (f"inspection.interface:projection require {point}",),
        )
        for point in ("A0", "A2")
    ),
    Fault(
        "authority: the page of the configuration asks the admission engine's question first",
        Code("inspection.pages.views:configuration", "discovery.question(caller).require(Point.A0)", "None"),
        ("tests/access/test_enumeration.py::test_a_refused_caller_costs_the_same_whatever_exists*",),
        ("inspection.pages.views:configuration require A0",),
    ),
)

ADMIN: Final = "tests/pages/test_admin.py::"
NAMESPACES: Final = "tests/pages/test_namespaces.py::"

LOOKED_AT: Final = (
    Fault(
        "authority: the admin looks at no grant",
        Code(
            "inspection.admin.scope:_by_grants",
            "frozenset(map(Action, found))",
            "frozenset(ACTIONS)",
        ),
        (f"{ADMIN}test_a_curator_sees_notes_and_neither_receipts_nor_grants",),
    ),
    Fault(
        "authority: the admin asks nobody",
        Code(
            "inspection.admin.scope:_by_asking",
            "authority.decide([_question(subject, *one) for one in asked], point)",
            "[True] * len(asked)",
        ),
        (f"{NAMESPACES}test_another_authorizer_says_what_the_admin_shows",),
        ("inspection.admin.scope:_by_asking decide",),
    ),
    Fault(
        "authority: the choice of namespaces asks nobody",
        Code(
            "inspection.namespaces:_asked",
            "authority.decide([question for _, question in asked], Point.A0)",
            "[True] * len(asked)",
        ),
        (f"{NAMESPACES}test_another_authorizer_says_what_there_is_to_choose",),
        ("inspection.namespaces:_asked decide A0",),
    ),
    Fault(
        "authority: the admin does not ask again",
        Code(
            "inspection.admin.site:LookingSite._looked_at",
            "Scope.of(subject, Point.A2, chosen, told) != request.scope or not _still_shown(request)",
            "False",
        ),
        (f"{ADMIN}test_a_grant_that_ends_while_a_page_is_read_takes_the_page_with_it",),
    ),
    Fault(
        "authority: the admin asks again whether anything is allowed, not whether the same is",
        Code("inspection.admin.scope:_by_grants", "None, whole)", "None)"),
        ("tests/access/test_withdrawals.py::test_a_grant_that_ends_takes_the_page_of_the_admin_with_it*",),
    ),
    Fault(
        "authority: the admin does not look for its rows again",
        Code("inspection.admin.site:_still_shown", 'len(standing.values_list("pk", flat=True)) == len(rows)', "True"),
        (f"{NAMESPACES}test_a_grant_of_the_time_between_two_check_points_shows_no_row",),
    ),
    Fault(
        "admin: a page is read beside other moments",
        Code("archive.transactions:read_only", "_durable(None)", '_durable("none")'),
        (f"{ADMIN}test_every_page_is_read_only_selects_no_text_and_keeps_the_policy",),
    ),
    Fault(
        "admin: rows under another binding are shown",
        Code("inspection.admin.scope:Scope.namespaces", 'policy_revision=OuterRef("policy_revision"),', ""),
        (f"{ADMIN}test_a_namespace_retained_under_another_policy_shows_no_row",),
    ),
    Fault(
        "admin: an address compares any column",
        Code(
            "inspection.admin.site:Looking.lookup_allowed",
            "lookup in {one.parameter_name for one in self.get_list_filter(request)}",
            "True",
        ),
        (f"{ADMIN}test_no_address_compares_a_column[text__startswith=X]",),
    ),
)

FIND: Final = "tests/pages/test_find.py::"

FOUND: Final = (
    Fault(
        "authority: an identifier is looked for unasked",
        Code("inspection.find:_allowed", "authority.decide(questions, point)", "[True] * len(questions)"),
        (f"{FIND}test_what_may_not_be_inspected_is_not_found",),
        ("inspection.find:_allowed decide",),
    ),
    Fault(
        "authority: an identifier is shown without asking again",
        Code("inspection.find:find", "_allowed(caller, term, Point.A2) != allowed", "False"),
        (f"{FIND}test_a_grant_that_ends_meanwhile_takes_the_answer_with_it",),
    ),
    Fault(
        "hold: an identifier is looked for at no one moment",
        Code("inspection.find:find", "snapshot(", f"{LOOSE}snapshot("),
        (f"{FIND}test_looking_is_read_only_and_selects_no_text",),
        ("inspection.find:find snapshot",),
    ),
)

SETTINGS: Final = "tests/pages/test_settings.py::"
PEOPLE: Final = "tests/pages/test_people.py::"

CROWDS: Final = (
    Fault(
        "crowd: a stranger who asks again at once stays for ever",
        Code("lychd.connections:Protocol._makes_room", "self._all.crowded and", "False and"),
        ("tests/front/test_crowds.py::test_in_a_crowd_a_stranger_asks_once_and_whoever_is_known_goes_on",),
    ),
    Fault(
        "crowd: whoever is known has to come again as well",
        Code("lychd.connections:Protocol._makes_room", ' and not self.cycle.scope.get("known")', ""),
        ("tests/front/test_crowds.py::test_in_a_crowd_a_stranger_asks_once_and_whoever_is_known_goes_on",),
    ),
    Fault(
        "crowd: it never ends",
        Code("lychd.connections:Listener._look_again", "connections.crowded = False", "connections.crowded = True"),
        ("tests/front/test_crowds.py::test_there_is_a_crowd_as_long_as_somebody_is_left_in_the_line",),
    ),
)

MANAGED: Final = (
    Fault(
        "authority: a grant of a page is not asked about before",
        Code("archive.operations.management:_asked", "question.require(Point.A0)", "None"),
        (f"{PEOPLE}test_a_refusal_changes_nothing",),
        ("archive.operations.management:_asked require A0",),
    ),
    Fault(
        "authority: a grant of a page is not asked about afterwards",
        Code("archive.operations.management:_asked", "question.require(Point.A2)", "None"),
        (f"{PEOPLE}test_a_permission_that_ends_meanwhile_withholds_the_secret",),
        ("archive.operations.management:_asked require A2",),
    ),
    Fault(
        "authority: a token is issued for whichever namespaces somebody names",
        Code("archive.operations.management:_managed", "authority.decide(asked, point)", "[True] * len(asked)"),
        (f"{PEOPLE}test_a_token_is_issued_for_no_namespace_in_which_the_issuer_may_not_grant",),
        ("archive.operations.management:_managed decide",),
    ),
    Fault(
        "authority: a token is ended for other namespaces by whoever grants in one",
        Code("archive.operations.management:_require_everywhere", "_managed(caller, keys, point) != keys", "False"),
        (f"{PEOPLE}test_a_token_for_a_foreign_namespace_too_is_not_ended_here_nor_is_that_one_told",),
    ),
    Fault(
        "authority: a token is issued for every namespace by a page",
        Code("archive.operations.management:issue", "namespaces=keys", "namespaces=None"),
        (f"{PEOPLE}test_a_token_is_shown_once_and_works", f"{WHO_ASKS}test_s368*"),
    ),
    Fault(
        "authority: a token opens whatever its subject may",
        Code("archive.authority:Caller.in_namespace", "if within is not None and namespace not in within", "if False"),
        (
            f"{WHO_ASKS}test_s368*",
            "tests/access/test_tokens.py::test_no_address_of_the_api_opens_to_a_token_for_elsewhere*",
        ),
    ),
    Fault(
        "authority: the namespaces of a token are not looked at where somebody asks",
        Code("archive.api.authentication:namespaces_of", "asker.namespaces if", "None if"),
        (f"{WHO_ASKS}test_s368*", f"{WHO_ASKS}test_discovery_tells_a_token_of_its_own_namespaces_alone*"),
    ),
    Fault(
        "authority: discovery by grants tells more than a token is for",
        Code("inspection.namespaces:choose", "within=within", "within=None"),
        (f"{WHO_ASKS}test_discovery_tells_a_token_of_its_own_namespaces_alone*",),
    ),
    Fault(
        "authority: discovery by asking tells more than a token is for",
        Code("inspection.namespaces:_asked", "if within is None or binding.namespace in within", ""),
        (f"{WHO_ASKS}test_discovery_tells_a_token_of_its_own_namespaces_alone*",),
    ),
    Fault(
        "authority: a page gives a role to whoever acts elsewhere",
        Code("archive.operations.management:give", "if not known", "if False"),
        (f"{PEOPLE}test_who_there_is_elsewhere_is_neither_told_nor_given",),
    ),
    Fault(
        "authority: the page of people shows tokens for other namespaces",
        Code("archive.operations.management:_people", "Q(namespaces__contains=[caller.namespace])", "Q()"),
        (f"{PEOPLE}test_a_token_for_a_foreign_namespace_too_is_not_ended_here_nor_is_that_one_told",),
    ),
    Fault(
        "authority: the admin tells which other namespaces a token is for",
        Code("inspection.admin.authority:_opens", "words(token.told)", "words(token.namespaces)"),
        ("tests/pages/test_admin.py::test_the_list_of_tokens_tells_of_namespaces_in_which_one_may_grant",),
    ),
    Fault(
        "authority: a rotated token opens more than the old one",
        Code("archive.operations.host:rotate_token", "namespaces=old.namespaces", "namespaces=None"),
        ("tests/commands/test_authority.py::test_a_token_is_for_the_namespaces_that_it_names",),
    ),
    Fault(
        "authority: the page of grants repeats to whoever may not",
        Code("archive.operations.management:may", "authority.decide([asked], Point.A0)[0]", "True"),
        (f"{PEOPLE}test_whoever_may_not_grant_sees_nobody_and_changes_nothing*",),
        ("archive.operations.management:may decide A0",),
    ),
    Fault(
        "management: one post is enough",
        Code("archive.curation.management:change", '!= "yes"', '== "never"'),
        (f"{PEOPLE}test_the_first_post_only_shows_and_the_second_one_changes*",),
    ),
    Fault(
        "management: a configuration that moved under the form is written over",
        Code("archive.operations.management:_configured", "seen != tag_of(met)", "False"),
        (f"{SETTINGS}test_a_form_about_another_configuration_changes_nothing*",),
    ),
    Fault(
        "management: a configuration that moved under the change is written over",
        Code(
            "archive.operations.management:_configured",
            "**{name: getattr(met, name) for name in _CONFIGURED},\n",
            "\n",
        ),
        (f"{SETTINGS}test_a_configuration_that_moved_meanwhile_is_left_alone",),
    ),
    Fault(
        "management: one post configures",
        Code("archive.curation.configuring:configure", 'request.POST.get("confirmed") != "yes"', "False"),
        (f"{SETTINGS}test_the_first_post_only_shows_and_the_second_one_changes*",),
    ),
    Fault(
        "management: one post disables",
        Code("archive.curation.configuring:disable", 'request.POST.get("confirmed") != "yes"', "False"),
        (f"{SETTINGS}test_the_first_post_only_shows_what_stopping_means",),
    ),
)

AUTHORITY: Final = (
    Fault(
        "authority: no answer counts",
        Code("archive.authority:Question.require", "not decide([self.asked], point)[0]", "False"),
        (f"{WITHDRAWN}[intake]",),
        ("archive.authority:Question.require decide",),
    ),
    Fault(
        "authority: no answer counts in a batch of intakes",
        Code(
            "archive.operations.intake:_ask",
            "authority.decide([one.question.asked for one in proposals], point)",
            "[True] * len(proposals)",
        ),
        (f"{WITHDRAWN}[intake of a batch]",),
        ("archive.operations.intake:_ask decide",),
    ),
    Fault(
        "authority: no answer counts in a batch of transitions",
        Code(
            "archive.operations.transition:_ask",
            "authority.decide([question.asked for _, question in asked], point)",
            "[True] * len(asked)",
        ),
        (f"{WITHDRAWN}[transitions of a batch]",),
        ("archive.operations.transition:_ask decide",),
    ),
    Fault(
        "authority: a page offers what nobody granted",
        Code(
            "archive.curation.reading:decisions",
            "authority.decide([question.asked for _, question in possible], Point.A0)",
            "[True] * len(possible)",
        ),
        ("tests/pages/test_note.py::test_only_what_is_granted_is_offered",),
        ("archive.curation.reading:decisions decide A0",),
    ),
    Fault(
        "authority: any true thing is a yes",
        Code(
            "archive.authority:decide",
            "return [answer is True for answer in answers]",
            "return [bool(answer) for answer in answers]",
        ),
        (f"{SCENARIOS}test_g_authority.py::test_s106_an_answer_that_is_not_true_is_no*",),
    ),
    Fault(
        "authority: a late answer under the hold is taken",
        Code("archive.authority:decide", "point is Point.A1 and", "False and"),
        (f"{SCENARIOS}test_g_authority.py::test_s106_an_answer_under_the_hold_has_to_come_within_half_a_second*",),
    ),
    Fault(
        "authority: an authorizer that hangs is waited for",
        Code("archive.authority:_answers", "future.result(limits.AUTHORITY_ANSWER_SECONDS)", "future.result(90)"),
        (f"{SCENARIOS}test_g_authority.py::test_s106_an_authorizer_that_hangs_is_given_up_at_every_point*",),
    ),
    Fault(
        "authority: authorizers that hang take every thread",
        Code("archive.authority:_answers", "not _asked_at_once.acquire(blocking=False)", "_asked_at_once is None"),
        (f"{SCENARIOS}test_g_authority.py::test_s106_authorizers_that_hang_take_no_more_threads_than_are_allowed",),
    ),
    Fault(
        "authority: too few answers are taken",
        Code("archive.authority:decide", "if late or len(answers) != len(questions):", "if late:"),
        (f"{SCENARIOS}test_g_authority.py::test_s106_an_authorizer_that_answers_too_little_or_cannot_be_made*",),
    ),
    Fault(
        "authority: a decision asks about its request alone",
        Code("archive.operations.transition:_about", "if note is None:", "if True:"),
        (f"{SCENARIOS}test_g_authority.py::test_s109_every_act_asks_its_own_question_at_each_point",),
    ),
    Fault(
        "authority: one grant opens every action",
        Code("archive.authority:GrantAuthorizer.decide_many", "_grant_key(question) in held for", "bool(held) for"),
        (f"{WITHDRAWN}[transitions of a batch]",),
    ),
)

GRANTS: Final = tuple(
    Fault(
        f"grant, asked {how}: {what}",
        Constant(f"archive.models.host:{statement}", old, new),
        (f"tests/faults/test_grants.py::{test}[{how}]",),
    )
    for statement, how in (("_HELD_ONE", "alone"), ("_HELD", "among others"))
    for what, old, new, test in (
        (
            "one that was withdrawn still holds",
            "held.revoked_at IS NULL",
            "true",
            "test_a_grant_that_was_withdrawn_holds_no_more",
        ),
        (
            "one that has run out still holds",
            "held.valid_until > clock_timestamp()",
            "true",
            "test_a_grant_that_has_run_out_holds_no_more",
        ),
        (
            "one that has not begun holds already",
            "held.valid_from <= clock_timestamp()",
            "true",
            "test_a_grant_that_has_not_begun_does_not_hold_yet",
        ),
        (
            "a principal that is switched off keeps its",
            "acting.active",
            "true",
            "test_a_principal_that_is_switched_off_holds_nothing",
        ),
    )
)

# --- judgements ------------------------------------------------------------------------------------------------------

INTAKE: Final = "archive.operations.intake:"
TRANSITION: Final = "archive.operations.transition:"
ORIGIN: Final = f"{SCENARIOS}test_b_tombstones.py::test_an_origin_leaves_with_the_text_and_the_revision_is_still_known"
RECALL: Final = "archive.operations.recall:"
PUBLISHED: Final = "archive.publication:published"
SELECTIONS: Final = "archive.selections:"

JUDGEMENTS: Final = (
    Fault(
        "intake: a writer has no bound",
        Code("archive.operations.intake:_admit", "if room == 0:", "if room is None:"),
        ("tests/operations/test_waiting.py::test_one_more_is_refused_and_changes_nothing",),
    ),
    Fault(
        "intake: the bound counts candidates of everybody",
        Constant("archive.operations.intake:_WAITING", " AND admitted_subject = %s LIMIT", " AND %s <> '' LIMIT"),
        ("tests/operations/test_waiting.py::test_the_bound_is_of_one_subject_in_one_namespace",),
    ),
    Fault(
        "intake: a request identity is not compared",
        Code(f"{INTAKE}_admit", "canonical.same(request.request_digest, one.request_digest)", "True"),
        (f"{SCENARIOS}test_a_intake.py::test_s003_one_more_space_under_the_same_identity_is_a_conflict",),
    ),
    Fault(
        "intake: the material of a revision is not compared",
        Code(f"{INTAKE}_admit", "not canonical.same(note.material_digest, one.material_digest)", "False"),
        (f"{SCENARIOS}test_a_intake.py::test_s004_other_bytes_under_one_source_revision_are_a_conflict",),
    ),
    Fault(
        "intake: a tombstone can be taken in again",
        Code(f"{INTAKE}_admit", "note is not None and note.state == State.REVOKED", "False"),
        (f"{SCENARIOS}test_b_tombstones.py::test_s020_a_revoked_revision_cannot_be_taken_in_again",),
    ),
    Fault(
        "transition: the version is not compared",
        Code(f"{TRANSITION}_judge", "note.lifecycle_version != change.expected_version", "False"),
        (f"{SCENARIOS}test_c_lifecycle.py::test_s033_a_decision_on_an_older_version_is_refused_and_told_no_version",),
    ),
    Fault(
        "transition: a successor arrives before its place is free",
        Code(f"{TRANSITION}_Ledger.write", "(False, True)", "(True, False)"),
        (f"{SCENARIOS}test_c_lifecycle.py::test_s031_a_promotion_archives_the_revision_before_it",),
    ),
    Fault(
        "transition: the edge is not looked at",
        Code(f"{TRANSITION}_judge", "not lifecycle.is_legal(State(note.state), change.to_state)", "False"),
        (f"{SCENARIOS}test_c_lifecycle.py::test_s035_a_candidate_cannot_be_archived",),
    ),
    Fault(
        "transition: one edge too many",
        Value("archive.lifecycle:NOTE_EDGES", lambda edges: edges | {("archived", "promoted")}),
        (f"{SCENARIOS}test_c_lifecycle.py::test_s036_what_was_archived_is_never_promoted_again",),
    ),
    Fault(
        "transition: whoever took a note in promotes it",
        Code(f"{TRANSITION}_judge", "note.admitted_subject == caller.subject", "False"),
        (f"{LIFECYCLE}test_who_took_a_note_in_cannot_promote_it_where_a_second_person_is_asked_for",),
    ),
    Fault(
        "transition: the revision before stays promoted",
        Code(f"{TRANSITION}_judge", "next(replaced, None)", "None"),
        (f"{SCENARIOS}test_c_lifecycle.py::test_s031_a_promotion_archives_the_revision_before_it",),
    ),
    Fault(
        "transition: a revoked text stays",
        Code(f"{TRANSITION}_Ledger._update", "THEN NULL ELSE n.text", "THEN n.text ELSE n.text"),
        (f"{HOLDS}test_a_tombstone_keeps_no_word_even_if_no_constraint_minds",),
    ),
    Fault(
        "transition: a revoked text stays and no constraint minds",
        Together(
            (
                Constraint("archive_note", "note_text_until_revoked"),
                Code(f"{TRANSITION}_Ledger._update", "THEN NULL ELSE n.text", "THEN n.text ELSE n.text"),
            )
        ),
        (f"{HOLDS}test_a_tombstone_keeps_no_word_even_if_no_constraint_minds",),
    ),
    Fault(
        "transition: a revoked origin stays and neither rule nor constraint minds",
        Together(
            (
                Gutted("archive_note", "note_text"),
                Constraint("archive_note", "note_text_until_revoked"),
                Code(
                    f"{TRANSITION}_Ledger._update",
                    "THEN NULL ELSE n.asserted",
                    "THEN n.asserted_origin ELSE n.asserted",
                ),
            )
        ),
        (ORIGIN,),
    ),
    Fault(
        "transition: the answer to a revocation repeats the origin",
        Code(f"{TRANSITION}_Ledger._advance", "note.asserted_origin = None", "pass"),
        (ORIGIN,),
    ),
    Fault(
        "doctor: a tombstone with an origin is none of its business",
        Constant("lychd.doctor:_TOMBSTONES", "OR t.asserted_origin IS NOT NULL", ""),
        ("tests/commands/test_host.py::test_a_tombstone_that_kept_its_origin_is_found",),
    ),
    Fault(
        "transition: another namespace's note is moved",
        Code(f"{TRANSITION}_held", ".filter(namespace=namespace, id__in=named.union(siblings))", ".filter(id__in=ids)"),
        ("tests/faults/test_borders.py::test_a_note_of_another_namespace_cannot_be_decided_here",),
    ),
    Fault(
        "batch: a second step is asked about as if there were no first",
        Code(f"{TRANSITION}_about", "from_state or note.state", "note.state"),
        (f"{BATCHES}test_each_step_of_a_note_that_moves_twice_is_asked_about_as_it_will_stand",),
    ),
    Fault(
        "batch: how long notes are is told to whoever may not decide",
        Code(
            f"{TRANSITION}_move_slice",
            "len(affordable) < len(places) and all(allowed)",
            "len(affordable) < len(places)",
        ),
        (f"{BATCHES}test_how_long_notes_are_is_told_to_nobody_who_may_not_decide",),
    ),
    Fault(
        "batch: all or nothing is neither",
        Code(
            f"{TRANSITION}_move_slice", "if atomic and any(answer.refusal for answer in found.values()):", "if False:"
        ),
        ("tests/faults/test_borders.py::test_an_atomic_batch_with_one_refusal_moves_nothing",),
    ),
    Fault(
        "recall: a request identity is not compared",
        Code(PUBLISHED, "not canonical.same(row.request_digest, digest)", "False"),
        (f"{SCENARIOS}test_e_receipts.py::test_s062_another_request_under_one_identity_is_a_conflict*",),
    ),
    Fault(
        "recall: a receipt of another kind is replayed",
        Code(PUBLISHED, "row.schema != schema or ", ""),
        (f"{RECEIPTS}test_a_semantic_receipt_is_not_resolved_or_replayed_as_a_lexical_one",),
    ),
    Fault(
        "recall: a namespace answers while it is rebuilt",
        Code(f"{RECALL}_publish", 'namespace.lexical_state != "ready"', "False"),
        ("tests/api/test_endpoints.py::test_a_namespace_that_is_rebuilt_does_not_answer",),
    ),
    Fault(
        "recall: a note that does not fit is taken",
        Code("archive.fitting:fit", "note.char_count <= remaining", "True"),
        (f"{SCENARIOS}test_d_recall.py::test_s052_a_note_that_does_not_fit_is_left_out_and_the_next_one_taken",),
    ),
    Fault(
        "rank: what is not promoted is eligible",
        Constant("archive.lexical:_RANK", "AND state = 'promoted' AND text IS NOT NULL", ""),
        (f"{HOLDS}test_words_that_strayed_into_the_postings_make_no_candidate_eligible",),
    ),
    Fault(
        "rank: another namespace's note is eligible",
        Constant(
            "archive.lexical:_RANK",
            "WHERE note_number = scored.note_number AND namespace_id = %(namespace)s::bigint",
            "WHERE note_number = scored.note_number",
        ),
        (f"{HOLDS}test_words_that_strayed_into_another_namespace_show_nothing_of_it",),
    ),
    Fault(
        "rank: equal scores stand in any order",
        Constant("archive.lexical:_RANK", "ORDER BY best.score DESC NULLS LAST, best.id", "ORDER BY best.score DESC"),
        (f"{SCENARIOS}test_d_recall.py::test_s051_equal_ranks_stand_in_the_order_of_their_identities",),
    ),
    *(
        Fault(
            f"resolution: {what}",
            Code(f"{SELECTIONS}_source", old, new),
            (f"{RECEIPTS}{test}",),
        )
        for what, old, new, test in (
            (
                "a note that was withdrawn still gives its text",
                "note.state != State.PROMOTED or ",
                "",
                "test_resolution_compares_each_selected_row_with_what_was_sealed[state = 'archived'*",
            ),
            (
                "the version is not compared",
                'note.lifecycle_version == chosen["lifecycle_version"]',
                "True",
                "test_resolution_compares_each_selected_row_with_what_was_sealed[lifecycle_version*",
            ),
            (
                "the text is not what its digest says",
                "not canonical.same(canonical.text_digest(note.text), note.text_digest)",
                "False",
                "test_resolution_compares_each_selected_row_with_what_was_sealed[text = *",
            ),
            (
                "the projection is not compared",
                'canonical.same(projection_of(note, namespace.key), chosen["projection_digest"])',
                "True",
                "test_resolution_compares_each_selected_row_with_what_was_sealed[asserted_origin*",
            ),
        )
    ),
    # Each of these three is in the projection digest too, so the fence falls only with that one.
    *(
        Fault(
            f"resolution: the {what} is not compared, nor the projection",
            Together(
                (
                    Code(f"{SELECTIONS}_source", old, "True"),
                    Code(
                        f"{SELECTIONS}_source",
                        'canonical.same(projection_of(note, namespace.key), chosen["projection_digest"])',
                        "True",
                    ),
                )
            ),
            (f"{RECEIPTS}{test}",),
        )
        for what, old, test in (
            (
                "source",
                'note.source.source_key == chosen["source_key"]',
                "test_a_source_that_was_renamed_under_a_receipt_makes_it_stale",
            ),
            (
                "revision",
                'note.source_revision == chosen["source_revision"]',
                "test_resolution_compares_each_selected_row_with_what_was_sealed[source_revision*",
            ),
            (
                "text digest",
                'canonical.same(note.text_digest, chosen["text_digest"])',
                "test_resolution_compares_each_selected_row_with_what_was_sealed[text_digest*",
            ),
        )
    ),
    Fault(
        "resolution: another subject's receipt gives text",
        Code(f"{SELECTIONS}opened", '"subject": caller.subject', '"subject": receipt["subject"]'),
        (f"{SCENARIOS}test_e_receipts.py::test_s070_a_receipt_resolves_for_nobody_but_its_subject",),
    ),
    Fault(
        "resolution: a receipt of the old binding gives text",
        Code(
            f"{SELECTIONS}opened",
            "**caller.binding.fields()",
            "**{key: receipt[key] for key in caller.binding.fields()}",
        ),
        (
            f"{SCENARIOS}test_f_binding.py::test_s083_a_receipt_of_the_old_binding_does_not_resolve_even_for_its_subject",
        ),
    ),
    Fault(
        "resolution: a receipt of another kind is taken",
        Code(f"{SELECTIONS}opened", "row.schema != schema", "False"),
        (f"{RECEIPTS}test_a_semantic_receipt_is_not_resolved_or_replayed_as_a_lexical_one",),
    ),
    Fault(
        "resolution: a receipt that was written over is believed",
        Code(f"{SELECTIONS}opened", "receipts.opened(row, namespace.key)", "row.receipt"),
        (f"{RECEIPTS}test_a_receipt_that_was_written_over_is_shown_to_nobody",),
    ),
    Fault(
        "review: a text that is not its digest is shown",
        Code(
            "archive.operations.review:_whole",
            "not canonical.same(canonical.text_digest(note.text), note.text_digest)",
            "False",
        ),
        ("tests/faults/test_borders.py::test_a_text_that_was_written_over_is_not_shown_for_review",),
    ),
    Fault(
        "receipt: the seal is not checked",
        Code("archive.receipts:opened", "verify(receipt)", "True"),
        (f"{RECEIPTS}test_a_receipt_that_was_written_over_is_shown_to_nobody",),
    ),
    Fault(
        "receipt: its form is not looked at",
        Code("archive.receipts:opened", "forms.is_whole(receipt)", "True"),
        (f"{FORGED}test_no_forged_receipt_is_opened_and_the_doctor_finds_each",),
    ),
    Fault(
        "receipt: the request it answered is not computed again",
        Code(
            "archive.forms:ReceiptForm.holds",
            'canonical.same(self.request_digest(receipt), receipt["request_digest"])',
            "True",
        ),
        (f"{FORGED}test_the_form_in_sql_and_the_form_in_python_agree",),
    ),
    Fault(
        "receipt: what was taken is not held against the budgets",
        Code(
            "archive.forms:ReceiptForm.holds",
            "_is_fitted(receipt, canonical.read_real(_at(receipt, self.least)))",
            "True",
        ),
        (f"{FORGED}test_the_form_in_sql_and_the_form_in_python_agree",),
    ),
    Fault(
        "receipt: a binding that never was is one",
        Code("archive.receipts:is_intact", '(receipt["owner"], receipt["policy_revision"]) in bound', "True"),
        (f"{FORGED}test_a_receipt_of_an_earlier_binding_stays_whole",),
    ),
    Fault(
        "receipt: it is not compared with what its row repeats",
        Code("archive.receipts:opened", "all(receipt[name] == getattr(row, name) for name in _REPEATED)", "True"),
        (f"{FORGED}test_a_row_that_says_otherwise_than_its_receipt_is_shown_to_nobody[*",),
    ),
    *(
        Fault(
            f"receipt: its {column} is not compared with the row",
            Code("archive.receipts:opened", old, "True"),
            (f"{RECEIPTS}test_a_receipt_that_is_sealed_anew_still_disagrees_with_its_row[{{'{column}'*",),
        )
        for column, old in (
            ("receipt_id", 'receipt["receipt_id"] == str(row.id)'),
            ("created_at", 'receipt["created_at"] == canonical.instant(row.created_at)'),
        )
    ),
    Fault(
        "digest: domains run into one another",
        Code("archive.canonical:digest", 'domain.encode("ascii") + b"\\x00" + payload', "payload"),
        ("tests/operations/test_canonical.py::test_a_digest_has_its_domain_and_a_nul_in_front",),
    ),
)

# --- reads and doors -------------------------------------------------------------------------------------------------

DOORS: Final = (
    Fault(
        "reads: a cursor of another list is taken",
        Together(
            (
                Code("inspection.cursors:List._open", " or parts[-1] != self.digest", ""),
                Code("inspection.cursors:List._open", "self._seal(key) != cursor", "False"),
            )
        ),
        (f"{SCENARIOS}test_i_inspection.py::test_s135_a_cursor_belongs_to_one_list_one_filter_and_one_caller",),
    ),
    Fault(
        "reads: a cursor of another caller is taken",
        Code("inspection.cursors:List.of", '{**filters, "subject": caller.subject}', "filters"),
        (f"{SCENARIOS}test_i_inspection.py::test_s135_a_cursor_belongs_to_one_list_one_filter_and_one_caller",),
    ),
    Fault(
        "reads: a record of another namespace is shown",
        Code("inspection.reads:_metadata", ".filter(namespace=namespace)", ".all()"),
        (f"{SCENARIOS}test_i_inspection.py::test_a_record_of_another_namespace_is_absent_here",),
    ),
    Fault(
        "reads: a list selects text",
        Code("inspection.reads:_metadata", ".only(*METADATA)", ""),
        (f"{SCENARIOS}test_i_inspection.py::test_s134_a_list_shows_every_state_and_no_text",),
    ),
    Fault(
        "reads: a receipt that was written over is shown",
        Code("inspection.reads:receipt", "receipts.inspected(row, namespace)", "row.receipt"),
        (f"{RECEIPTS}test_a_receipt_that_was_written_over_is_shown_to_nobody",),
    ),
    Fault(
        "reads: own intakes are everybody's",
        Code("inspection.reads:list_own_intakes", ".filter(admitted_subject=caller.subject)", ""),
        ("tests/faults/test_borders.py::test_own_intakes_are_ones_own",),
    ),
    Fault(
        "token: one that has run out is good",
        Constant("archive.models.host:_LIVE", " AND token.expires_at > clock_timestamp()", ""),
        (f"{WHO_ASKS}test_a_token_ends_at_its_time",),
    ),
    Fault(
        "token: one that was revoked is good",
        Constant("archive.models.host:_LIVE", " AND token.revoked_at IS NULL", ""),
        (f"{WHO_ASKS}test_all_bad_tokens_are_answered_alike",),
    ),
    Fault(
        "token: one of a principal that is switched off is good",
        Constant("archive.models.host:_LIVE", " AND acting.active", ""),
        (f"{WHO_ASKS}test_all_bad_tokens_are_answered_alike",),
    ),
    Fault(
        "session: a write needs no proof of its page",
        Code("archive.api.authentication:Session.enforce_csrf", "raise CsrfFailed", "pass"),
        (f"{WHO_ASKS}test_a_write_of_a_session_needs_the_csrf_header",),
    ),
    *(
        Fault(
            f"json: {what}",
            Code(f"archive.api.strict:{where}", old, new),
            (f"{BAD_INPUTS}test_a_bad_body_is_refused[{case}*",),
        )
        for what, case, where, old, new in (
            ("a name given twice is taken", "B8 a key given twice", "_object", "len(made) != len(pairs)", "False"),
            ("a number that is not finite is taken", "B12 ", "_constant", '_Wrong("a finite number")', "0"),
            ("any depth is taken", "deeper than", "_require_depth", "depth > limits.BODY_MAX_DEPTH", "False"),
        )
    ),
    # Each of these two stands in two places; it falls only with both.
    Fault(
        "json: a NUL is taken",
        Together(
            (
                Code("archive.api.strict:_unstorable", '"\\x00" in text', "False"),
                Code("archive.requests:Checker.whole_text", '"\\x00" in value', "False"),
            )
        ),
        (f"{BAD_INPUTS}test_a_bad_body_is_refused[B1 NUL*",),
    ),
    Fault(
        "json: any size is taken",
        Together(
            (
                Code("archive.api.strict:_read", "declared > most", "False"),
                Code("archive.api.strict:_read", "len(content) > most", "False"),
            )
        ),
        (f"{BAD_INPUTS}test_a_bad_body_is_refused[B30 *",),
    ),
)

FAULTS: Final = (
    *triggers(),
    *constraints(),
    *DATABASE,
    *UNHELD,
    *HELD,
    *TRANSACTIONS,
    *UNASKED,
    *LOOKED_AT,
    *FOUND,
    *CROWDS,
    *MANAGED,
    *AUTHORITY,
    *GRANTS,
    *JUDGEMENTS,
    *DOORS,
    *meaning.FAULTS,
)
