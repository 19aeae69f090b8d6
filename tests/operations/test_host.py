"""The host's own acts: principals, grants, roles, tokens, and which namespaces are served."""

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model

from archive import limits
from archive.authority import PURPOSE_OF, Action, Caller, active_subject, subject_of_user
from archive.lifecycle import State
from archive.models import ConfiguredBinding, ConfiguredBindingHistory, Grant, Principal, Role, Token
from archive.operations import host
from archive.operations.intake import intake
from archive.operations.migration import migrate
from archive.operations.transition import promote, revoke
from inspection import reads
from inspection.cursors import PageRequest
from tests import cast
from tests.scenarios.counting import Counts, refused
from tests.scenarios.wire import without_a_database

DAY = timedelta(days=1)


def now(owner) -> datetime:
    """The database's clock."""
    return owner.execute("SELECT clock_timestamp()").fetchone()[0]


# --- principals ------------------------------------------------------------------------------------------------------


def test_a_principal_is_made_once_and_returned_ever_after(transactional_db):
    one, other = host.map_principal("frank"), host.map_principal("frank")
    assert one.id == other.id
    assert (one.subject, one.active, one.user_id) == ("frank", True, None)
    assert active_subject("frank") == "frank"
    assert active_subject("nobody") is None
    assert active_subject("no\x00body") is None


def test_a_principal_stands_for_one_user_and_a_user_has_one(transactional_db):
    users = [get_user_model().objects.create_user(name) for name in ("frank", "grace")]
    host.map_principal("frank", user_id=users[0].pk)
    assert host.map_principal("frank", user_id=users[0].pk).user_id == users[0].pk
    with refused(400, "invalid_request"):
        host.map_principal("frank", user_id=users[1].pk)
    with refused(400, "invalid_request"):
        host.map_principal("grace", user_id=users[0].pk)
    assert subject_of_user(users[0].pk) == "frank"
    assert subject_of_user(users[1].pk) is None


def test_a_principal_outlives_its_user_and_its_subject_goes_to_nobody_else(transactional_db):
    user = get_user_model().objects.create_user("frank")
    host.map_principal("frank", user_id=user.pk)
    user.delete()
    assert Principal.objects.get(subject="frank").user_id is None
    other = get_user_model().objects.create_user("grace")
    with refused(400, "invalid_request"):
        host.map_principal("frank", user_id=other.pk)
    assert subject_of_user(other.pk) is None


@pytest.mark.parametrize("subject", ["", "-x", "a b", "ä", "x" * 129, "a\x00"])
def test_a_subject_is_an_identifier(transactional_db, subject):
    with refused(400, "invalid_request"):
        host.map_principal(subject)
    assert not Principal.objects.exists()


def test_who_is_switched_off_may_nothing_until_switched_on_again(garden, alice):
    host.set_active("alice", active=False)
    with refused(403, "authority_refused"):
        cast.admitted(alice)
    assert active_subject("alice") is None
    host.set_active("alice", active=True)
    assert cast.admitted(alice).state == "candidate"
    with refused(404, "record_absent"):
        host.set_active("nobody", active=False)


# --- grants ----------------------------------------------------------------------------------------------------------


def raw_grant(connection, **changes: object) -> None:
    """A grant of intake to sole, written as it stands."""
    row = {
        "subject": "sole",
        "namespace_key": cast.GARDEN,
        "owner": cast.OWNER,
        "purpose": "memory",
        "policy_revision": cast.POLICY,
        "action": "intake",
        "granted_by": "host:tests",
        **changes,
    }
    connection.execute(
        f"INSERT INTO lychd_grant ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", list(row.values())
    )


@pytest.fixture
def sole(garden) -> Caller:
    """Somebody with a principal and nothing else."""
    host.map_principal("sole")
    return garden.caller("sole")


WINDOWS: list[tuple[str, dict[str, Callable[[datetime], datetime]], bool]] = [
    ("since always", {}, True),
    ("from a moment ago", {"valid_from": lambda at: at - timedelta(microseconds=1)}, True),
    ("from tomorrow", {"valid_from": lambda at: at + DAY}, False),
    ("until tomorrow", {"valid_until": lambda at: at + DAY}, True),
    ("until yesterday", {"valid_from": lambda at: at - 2 * DAY, "valid_until": lambda at: at - DAY}, False),
    ("until now", {"valid_until": lambda at: at}, False),
    ("revoked", {"revoked_at": lambda at: at}, False),
    ("revoked ahead of time", {"revoked_at": lambda at: at + DAY}, False),
]


@pytest.mark.parametrize(("window", "allowed"), [one[1:] for one in WINDOWS], ids=[one[0] for one in WINDOWS])
def test_a_grant_holds_inside_its_time_by_the_databases_clock(sole, owner, window, allowed):
    at = now(owner)
    raw_grant(owner, **{name: of(at) for name, of in window.items()})
    if allowed:
        assert intake(sole, cast.wanted()).note.state == "candidate"
    else:
        with refused(403, "authority_refused"):
            intake(sole, cast.wanted())


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "other"},
        {"namespace_key": "meadow"},
        {"owner": "heirs"},
        {"purpose": "curation"},
        {"policy_revision": "policy-2"},
        {"action": "promote"},
        {"action": "INTAKE"},
    ],
    ids=str,
)
def test_a_grant_allows_only_what_it_says_in_all_six_parts(sole, owner, change):
    raw_grant(owner, **change)
    with refused(403, "authority_refused"):
        intake(sole, cast.wanted())


def test_a_grant_ends_the_moment_it_is_withdrawn_and_can_be_given_again(sole, owner):
    binding = sole.binding
    host.grant("sole", binding, [Action.INTAKE, Action.FLAG], by="host:tests")
    assert cast.admitted(sole).state == "candidate"
    assert host.withdraw("sole", cast.GARDEN, [Action.INTAKE]) == 1
    assert host.withdraw("sole", cast.GARDEN, [Action.INTAKE]) == 0
    with refused(403, "authority_refused"):
        cast.admitted(sole, source="b")
    host.grant("sole", binding, [Action.INTAKE], by="host:tests")
    assert cast.admitted(sole, source="b").state == "candidate"
    rows = Grant.objects.filter(subject="sole", action="intake").order_by("id")
    assert [row.revoked_at is None for row in rows] == [False, True]


def test_the_same_grant_is_not_written_twice_and_a_longer_one_is(sole, owner):
    binding, at = sole.binding, now(owner)
    host.map_principal("frank")

    def give(until: datetime | None) -> int:
        return len(host.grant("frank", binding, [Action.RECALL], by="host:tests", valid_until=until))

    assert [give(at + DAY), give(at + DAY), give(at + DAY / 2), give(at + 2 * DAY), give(None), give(at + 9 * DAY)] == [
        1,
        0,
        0,
        1,
        1,
        0,
    ]
    assert Grant.objects.filter(subject="frank").count() == 3


def test_a_grant_needs_a_principal_and_an_end_that_is_to_come(sole, owner):
    binding = sole.binding
    for wrong in (
        lambda: host.grant("nobody", binding, [Action.RECALL], by="host:tests"),
        lambda: host.grant("sole", binding, [Action.RECALL], by="host:tests", valid_until=now(owner) - DAY),
        lambda: host.grant("sole", binding, [Action.RECALL], by="host:tests", valid_until=datetime(2990, 1, 1)),  # noqa: DTZ001
    ):
        with refused(400, "invalid_request"):
            wrong()
    assert not Grant.objects.filter(subject="sole").exists()


def test_a_grant_is_written_with_the_purpose_of_its_action(sole):
    host.grant("sole", sole.binding, list(Action), by="host:tests")
    rows = Grant.objects.filter(subject="sole").values_list("action", "purpose", "owner", "policy_revision")
    assert set(rows) == {(action.value, PURPOSE_OF[action].value, cast.OWNER, cast.POLICY) for action in Action}


# --- roles -----------------------------------------------------------------------------------------------------------


def test_role_names_and_action_names_can_be_mixed(transactional_db):
    assert host.actions_of(["writer", "recall"]) == sorted(
        [Action.INTAKE, Action.FLAG, Action.LIST_OWN_INTAKES, Action.RECALL]
    )
    assert host.actions_of(["writer", "writer", "intake"]) == host.actions_of(["writer"])
    assert host.actions_of([]) == []


def test_every_role_is_made_of_actions_that_there_are(transactional_db):
    assert {"curator", "recaller", "writer", "inspector", "operator"} <= set(
        Role.objects.values_list("name", flat=True)
    )
    for name in Role.objects.values_list("name", flat=True):
        assert host.actions_of([name])


def test_an_unknown_name_is_refused_with_the_names_that_there_are(transactional_db):
    from archive.refusals import InvalidRequest

    with pytest.raises(InvalidRequest) as no:
        host.actions_of(["writer", "gardener"])
    assert "curator" in no.value.faults[0].message
    assert "inspect_metadata" in no.value.faults[0].message


def test_a_role_that_grows_later_gives_nothing_to_those_who_have_it(sole, owner):
    host.grant("sole", sole.binding, host.actions_of(["writer"]), by="host:tests")
    owner.execute("UPDATE lychd_role SET actions = array_append(actions, 'recall') WHERE name = 'writer'")
    cast.admitted(sole)
    with refused(403, "authority_refused"):
        cast.asked(sole)


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def issued(transactional_db) -> host.IssuedToken:
    host.map_principal("frank")
    return host.issue_token("frank", by="host:tests", namespaces=None, name="laptop")


def good(secret: str) -> bool:
    """Whether the HTTP door would take this secret now."""
    from archive.api.authentication import _live

    return _live(host.digest_of_secret(secret)) is not None


def test_a_secret_is_shown_once_and_kept_nowhere(issued, owner):
    assert re.fullmatch(r"lychd_[A-Za-z0-9_-]{43}", issued.secret)
    assert issued.token.digest == hashlib.sha256(issued.secret.encode()).hexdigest()
    assert issued.secret not in repr(issued)
    (dump,) = owner.execute("SELECT t::text FROM lychd_token t").fetchone()
    assert issued.secret not in dump
    assert issued.secret.startswith(issued.token.prefix)
    assert len(issued.token.prefix) < 16
    assert good(issued.secret)
    assert host.issue_token("frank", by="host:tests", namespaces=None).secret != issued.secret


def test_a_token_lives_as_long_as_was_asked(issued, owner):
    life = issued.token.expires_at - Token.objects.get().created_at
    assert abs(life - limits.TOKEN_LIFETIME_DAYS_DEFAULT * DAY) < timedelta(minutes=1)
    for days in (0, -1, limits.TOKEN_LIFETIME_DAYS_MAX + 1):
        with refused(400, "invalid_request"):
            host.issue_token("frank", by="host:tests", namespaces=None, days=days)
    host.issue_token("frank", by="host:tests", namespaces=None, days=limits.TOKEN_LIFETIME_DAYS_MAX)


def test_a_token_past_its_end_is_dead_by_the_databases_clock(issued, owner):
    owner.execute("UPDATE lychd_token SET expires_at = clock_timestamp()")
    assert not good(issued.secret)
    with refused(404, "record_absent"):
        host.rotate_token(issued.token.prefix, by="host:tests")


def test_a_revoked_token_is_dead_at_once_and_for_good(issued, owner):
    revoked = host.revoke_token(issued.token.prefix)
    assert revoked.revoked_at is not None
    assert not good(issued.secret)
    with refused(404, "record_absent"):
        host.revoke_token(issued.token.prefix)
    with pytest.raises(Exception, match="token_fence"):
        owner.execute("UPDATE lychd_token SET revoked_at = NULL")


def test_a_rotated_token_and_its_successor_overlap_and_then_the_old_one_ends(issued, owner):
    successor = host.rotate_token(issued.token.prefix, by="host:tests")
    assert good(issued.secret)
    assert good(successor.secret)
    old = Token.objects.get(id=issued.token.id)
    left = old.expires_at - now(owner)
    assert timedelta(0) < left <= timedelta(seconds=limits.TOKEN_ROTATION_OVERLAP_SECONDS_DEFAULT)
    assert (successor.token.name, successor.token.principal_id) == ("laptop", old.principal_id)
    owner.execute("UPDATE lychd_token SET expires_at = clock_timestamp() WHERE id = %s", [old.id])
    assert (good(issued.secret), good(successor.secret)) == (False, True)


def test_a_rotation_without_overlap_ends_the_old_token_now(issued):
    successor = host.rotate_token(issued.token.prefix, by="host:tests", overlap_seconds=0)
    assert (good(issued.secret), good(successor.secret)) == (False, True)


@pytest.mark.parametrize("overlap", [-1, limits.TOKEN_LIFETIME_DAYS_MAX * 86_400 + 1, 10**18])
def test_an_overlap_is_finite_and_not_negative(issued, overlap):
    with refused(400, "invalid_request"):
        host.rotate_token(issued.token.prefix, by="host:tests", overlap_seconds=overlap)
    assert Token.objects.count() == 1


@pytest.fixture
def between(monkeypatch):
    """Let something happen between the look at a token and the act upon it."""
    look = host._live_token

    def put(act):
        def overtaken(prefix):
            found = look(prefix)
            monkeypatch.setattr(host, "_live_token", look)
            act(prefix)
            return found

        monkeypatch.setattr(host, "_live_token", overtaken)

    return put


def test_a_rotation_that_another_overtakes_leaves_two_successors_and_the_first_end(issued, between, owner):
    between(lambda prefix: host.rotate_token(prefix, by="host:tests", overlap_seconds=60))
    host.rotate_token(issued.token.prefix, by="host:tests", overlap_seconds=3_600)
    old = Token.objects.get(id=issued.token.id)
    assert old.expires_at - now(owner) <= timedelta(seconds=60)
    assert Token.objects.exclude(id=old.id).count() == 2


def test_a_rotation_that_a_revocation_overtakes_leaves_no_successor(issued, between):
    between(host.revoke_token)
    with refused(404, "record_absent"):
        host.rotate_token(issued.token.prefix, by="host:tests")
    assert Token.objects.get().revoked_at is not None


def test_a_rotation_never_lengthens_the_old_token(issued, owner):
    owner.execute("UPDATE lychd_token SET expires_at = clock_timestamp() + interval '60 seconds'")
    before = Token.objects.get().expires_at
    host.rotate_token(issued.token.prefix, by="host:tests")
    assert Token.objects.get(id=issued.token.id).expires_at == before


@pytest.mark.parametrize("days", [1, 30, 90, 365])
def test_rotated_again_and_again_a_token_lives_as_long_as_the_first(transactional_db, days):
    host.map_principal("frank")
    held = host.issue_token("frank", by="host:tests", namespaces=None, days=days)
    for _ in range(3):
        held = host.rotate_token(held.token.prefix, by="host:tests")
    token = Token.objects.get(id=held.token.id)
    assert abs(token.expires_at - token.created_at - days * DAY) < timedelta(minutes=1)


def test_a_token_of_who_is_switched_off_is_dead(issued):
    host.set_active("frank", active=False)
    assert not good(issued.secret)
    with refused(400, "invalid_request"):
        host.issue_token("frank", by="host:tests", namespaces=None)
    host.set_active("frank", active=True)
    assert good(issued.secret)


@pytest.mark.parametrize("prefix", ["", "lychd_nothing", "\x00", "\ud800", "%"])
def test_a_prefix_that_names_no_token(issued, prefix):
    for act in (host.revoke_token, lambda named: host.rotate_token(named, by="host:tests")):
        with refused(404, "record_absent"):
            act(prefix)


def test_a_prefix_that_names_two_tokens_ends_neither(issued, owner):
    other = host.issue_token("frank", by="host:tests", namespaces=None)
    owner.execute("ALTER TABLE lychd_token DISABLE TRIGGER USER")
    owner.execute("UPDATE lychd_token SET prefix = 'lychd_same'")
    owner.execute("ALTER TABLE lychd_token ENABLE TRIGGER USER")
    with refused(400, "invalid_request"):
        host.revoke_token("lychd_same")
    assert good(issued.secret)
    assert good(other.secret)


def test_without_a_database_the_host_is_told_so(issued):
    with without_a_database():
        for act in (
            lambda: host.actions_of(["writer"]),
            lambda: host.revoke_token(issued.token.prefix),
            lambda: host.map_principal("grace"),
            lambda: host.disable_namespace("garden", by="host:tests"),
            lambda: active_subject("frank"),
            lambda: subject_of_user(1),
        ):
            with refused(503, "storage_unavailable"):
                act()


# --- namespaces ------------------------------------------------------------------------------------------------------


def test_every_form_of_a_binding_is_kept(garden):
    host.configure_namespace("garden", owner="heirs", policy_revision="p2", by="host:other", second_person=True)
    host.disable_namespace("garden", by="host:third")
    assert ConfiguredBinding.objects.count() == 1
    rows = ConfiguredBindingHistory.objects.order_by("id").values_list(
        "owner", "policy_revision", "second_person", "configured_by"
    )
    assert list(rows) == [
        (cast.OWNER, cast.POLICY, False, "host:tests"),
        ("heirs", "p2", True, "host:other"),
        ("heirs", "p2", True, "host:third"),
    ]
    with refused(404, "record_absent"):
        host.disable_namespace("garden", by="host:tests")
    with refused(404, "record_absent"):
        host.disable_namespace("nowhere", by="host:tests")


@pytest.mark.parametrize(
    "wrong",
    [
        {"namespace": "a/b"},
        {"namespace": ""},
        {"owner": "a b"},
        {"policy_revision": "é"},
        {"text_configuration": "klingon"},
        {"text_configuration": "simple; DROP TABLE archive_note"},
    ],
    ids=str,
)
def test_a_binding_out_of_its_pattern_is_not_configured(transactional_db, wrong):
    given = {"namespace": "garden", "owner": "o", "policy_revision": "p", **wrong}
    with refused(400, "invalid_request"):
        host.configure_namespace(by="host:tests", **given)
    assert not ConfiguredBinding.objects.exists()


def test_configuring_writes_nothing_of_the_archive(transactional_db, owner):
    before = Counts(owner)
    host.configure_namespace("garden", owner="o", policy_revision="p", by="host:tests")
    before.grew(lychd_binding=1, lychd_binding_history=1)


def test_namespaces_know_nothing_of_each_other(garden, alice, owner):
    meadow = cast.plant("meadow")
    there = meadow.caller("alice")
    cast.promoted(there, "Roses want morning sun.", source="roses", request_id="r1")
    cast.asked(there, "roses", request_id="q1")
    before = of_namespace(owner, "meadow")
    assert before

    note = cast.promoted(alice, "Roses want evening sun.", source="roses", request_id="r1")
    assert cast.asked(alice, "roses", request_id="q1").receipt["selected"][0]["note_id"] == str(note.id)
    newer = cast.admitted(alice, "Roses want rain.", source="roses", revision="2")
    promote(alice, cast.step(newer, State.PROMOTED))
    revoke(alice, cast.step(note, State.REVOKED, expected=3))
    with refused(404, "record_absent"):
        promote(there, cast.step(newer, State.PROMOTED))
    binding = host.configure_namespace("garden", owner="heirs", policy_revision="p2", by="host:tests")
    host.grant("otto", binding, [Action.MIGRATE_BINDING], by="host:tests")
    migrate(garden.caller("otto"), reason="Inherited.")
    host.disable_namespace("garden", by="host:tests")

    assert of_namespace(owner, "meadow") == before
    assert cast.asked(there, "roses").receipt["selected"][0]["source_key"] == "roses"
    page = reads.list_notes(meadow.caller("ivy"), PageRequest())
    assert [one.source_key for one in page.items] == ["roses"]


def of_namespace(owner, key: str) -> dict[str, list[str]]:
    """Every row of every table that belongs to a namespace, byte for byte."""
    (number,) = owner.execute("SELECT id FROM archive_namespace WHERE key = %s", [key]).fetchone()
    tables = [
        name
        for (name,) in owner.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND column_name = 'namespace_id' ORDER BY 1"
        )
    ]
    assert len(tables) >= 8
    found = {
        name: [
            row
            for (row,) in owner.execute(f"SELECT t::text FROM {name} t WHERE namespace_id = %s ORDER BY 1", [number])
        ]
        for name in tables
    }
    found["archive_namespace"] = [
        row for (row,) in owner.execute("SELECT t::text FROM archive_namespace t WHERE id = %s", [number])
    ]
    return found


def test_grants_are_carried_only_when_asked_and_only_those_that_hold(garden, alice, owner):
    cast.admitted(alice)
    host.withdraw("bob", cast.GARDEN, [Action.RESOLVE])
    host.map_principal("late")
    raw_grant(owner, subject="late", valid_from=now(owner) + DAY)
    ends = now(owner) + DAY
    raw_grant(owner, subject="late", action="recall", purpose="answer", valid_until=ends)
    binding = host.configure_namespace(cast.GARDEN, owner=cast.OWNER, policy_revision="policy-2", by="host:tests")
    host.grant("otto", binding, [Action.MIGRATE_BINDING], by="host:tests")
    current = Grant.current().filter(policy_revision=cast.POLICY).count()
    before = list(Grant.objects.order_by("id").values())

    done = migrate(garden.caller("otto"), reason="New policy.", carry_grants=True)

    assert done.carried_grants == current
    assert list(Grant.objects.order_by("id").values())[: len(before)] == before, "the old rows stay as they are"
    carried = Grant.objects.filter(policy_revision="policy-2", granted_by="otto")
    assert set(carried.filter(subject="bob").values_list("action", flat=True)) == {
        action.value for action in host.actions_of(["recaller"]) if action is not Action.RESOLVE
    }
    assert list(carried.filter(subject="late").values_list("action", "valid_until")) == [("recall", ends)]
    assert cast.asked(garden.caller("bob"), "roses").receipt["outcome"] == "miss"


def test_the_host_is_named_in_what_it_writes():
    assert re.match(r"host:.+", host.host_actor())


def test_times_of_tokens_and_grants_are_the_databases(issued, owner):
    before = now(owner)
    host.map_principal("grace")
    host.issue_token("grace", by="host:tests", namespaces=None)
    after = now(owner)
    assert before < Token.objects.latest("id").created_at < after
    assert before < Principal.objects.get(subject="grace").created_at < after
    assert before.tzinfo is not None
    assert datetime.now(UTC) > datetime(2020, 1, 1, tzinfo=UTC)
