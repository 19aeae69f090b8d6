"""Tokens and sign-ins: who is known, who is not, and that a refusal leaves no trace."""

import hashlib
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from archive import canonical, limits
from archive.models import Token
from archive.operations import host, management
from archive.transactions import moment
from tests import cast
from tests.api.conftest import Api, body, nothing_added, problem, same_but_for_the_id, token


def header(value: str) -> dict[str, str]:
    return {"authorization": value}


def test_nobody_is_refused_with_the_scheme_to_use(anonymous):
    with nothing_added():
        answer = anonymous.get("notes")
    problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"] == "Bearer"


def test_every_address_refuses_nobody(anonymous):
    note = "7d444840-9dc0-41d1-b245-5ffdce74fad2"
    for path in ("notes", f"notes/{note}", f"notes/{note}/events", f"notes/{note}/text", "intakes/r", "intakes?mine",
                 "events", "receipts/q", "/api/v1/configuration"):  # fmt: skip
        problem(anonymous.get(path), 401, "unauthenticated")
    for path in ("notes", "notes/batch", "transitions", f"notes/{note}/promote", f"notes/{note}/archive",
                 f"notes/{note}/revoke", f"notes/{note}/flags", "recalls", "recalls/q/resolve"):  # fmt: skip
        problem(anonymous.post(path), 401, "unauthenticated")


@pytest.mark.parametrize(
    "given",
    [
        "Bearer",
        "Bearer ",
        "Bearer  lychd_" + "a" * 43,
        "Bearer lychd_" + "a" * 43,
        "Bearer lychd_" + "a" * 42,
        "Bearer lychd_" + "\u0430" * 43,
        "Bearer " + "a" * 10_000,
        "Basic YWxpY2U6YWxpY2U=",
        "Token lychd_" + "a" * 43,
        "lychd_" + "a" * 43,
        "",
    ],
)
def test_what_is_no_good_token_is_nobody(anonymous, given):
    with nothing_added():
        answer = anonymous.client.get(anonymous.at("notes"), headers=header(given))
    problem(answer, 401, "unauthenticated")


def test_all_bad_tokens_are_answered_alike(garden):
    unknown, ended, inactive = token("alice"), token("bob"), token("ivy")
    Token.objects.filter(digest=host.digest_of_secret(ended)).update(revoked_at=moment())
    host.set_active("ivy", active=False)
    answers = [Api(unknown[:-1] + "-").get("notes"), Api(ended).get("notes"), Api(inactive).get("notes")]
    for answer in answers:
        problem(answer, 401, "unauthenticated")
        assert same_but_for_the_id(answer, answers[0])


def test_a_token_ends_at_its_time(garden):
    secret = token("ivy")
    assert Api(secret).get("notes").status_code == 200
    Token.objects.update(expires_at=moment())
    problem(Api(secret).get("notes"), 401, "unauthenticated")


def test_a_principal_that_is_active_again_is_known_again(garden):
    secret = token("ivy")
    host.set_active("ivy", active=False)
    problem(Api(secret).get("notes"), 401, "unauthenticated")
    host.set_active("ivy", active=True)
    assert Api(secret).get("notes").status_code == 200


def test_a_bad_token_does_not_fall_back_to_the_session(signed_in):
    browser = signed_in("ivy")
    assert browser.get("/api/v1/ns/garden/notes").status_code == 200
    problem(browser.get("/api/v1/ns/garden/notes", headers=header("Bearer x")), 401, "unauthenticated")


def test_b54_two_authorization_headers(garden):
    secret = token("ivy")
    caller = Api(None)
    answer = caller.client.get(caller.at("notes"), headers=header(f"Bearer {secret},Bearer {secret}"))
    problem(answer, 400, "invalid_request")


def test_b54_a_long_forwarded_for_is_nobodys_business(api):
    assert api("ivy").get("notes", x_forwarded_for="1.2.3.4, " * 1_200).status_code == 200


def test_only_the_digest_of_a_token_is_kept(garden):
    secret = token("alice")
    row = Token.objects.get()
    assert row.digest == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(row.__dict__)


def test_a_use_is_noted_once_in_ten_minutes(api):
    ivy = api("ivy")
    assert Token.objects.get().last_used_at is None
    ivy.get("notes")
    first = Token.objects.get().last_used_at
    assert first is not None
    ivy.get("notes")
    assert Token.objects.get().last_used_at == first
    earlier = first - timedelta(seconds=limits.TOKEN_LAST_USE_SECONDS + 1)
    Token.objects.update(last_used_at=earlier)
    ivy.get("notes")
    assert Token.objects.get().last_used_at > first


def test_a_refused_call_notes_no_use(api):
    ivy = api("ivy")
    problem(ivy.post("notes", body()), 403, "authority_refused")
    problem(ivy.get("notes?limit=0"), 400, "invalid_request")
    problem(ivy.get("notes/7d444840-9dc0-41d1-b245-5ffdce74fad2"), 404, "record_absent")
    assert Token.objects.get().last_used_at is None


def test_a_note_of_use_that_fails_takes_no_answer_back(api, monkeypatch):
    monkeypatch.setattr(host, "token_used", lambda token_id: 1 / 0)
    assert api("ivy").get("notes").status_code == 200


def test_a_signed_in_user_acts_as_the_principal_it_stands_for(signed_in):
    assert signed_in("ivy").get("/api/v1/ns/garden/notes").status_code == 200


def test_a_write_of_a_session_needs_the_csrf_header(signed_in):
    browser = signed_in("wanda", csrf=True)
    with nothing_added():
        problem(browser.post("/api/v1/ns/garden/notes", body(), content_type="application/json"), 403, "csrf_failed")
    browser.get("/api/v1/docs")
    value = browser.cookies["csrftoken"].value
    answer = browser.post(
        "/api/v1/ns/garden/notes", body(), content_type="application/json", headers={"x-csrftoken": value}
    )
    assert answer.status_code == 201


def test_the_csrf_token_is_not_looked_for_in_a_body(signed_in):
    browser = signed_in("wanda", csrf=True)
    form = {"csrfmiddlewaretoken": "x", "text": "a"}
    problem(browser.post("/api/v1/ns/garden/notes", form), 415, "unsupported_media")


def test_a_write_with_a_token_needs_no_csrf(garden):
    client = Client(enforce_csrf_checks=True)
    answer = client.post(
        "/api/v1/ns/garden/notes", body(), content_type="application/json", headers=header(f"Bearer {token('wanda')}")
    )
    assert answer.status_code == 201


def test_an_inactive_user_is_nobody(signed_in):
    browser = signed_in("ivy")
    get_user_model().objects.update(is_active=False)
    problem(browser.get("/api/v1/ns/garden/notes"), 401, "unauthenticated")


def test_a_user_of_an_inactive_principal_may_nothing(signed_in):
    browser = signed_in("ivy")
    host.set_active("ivy", active=False)
    problem(browser.get("/api/v1/ns/garden/notes"), 403, "authority_refused")


def test_c21_nul_in_a_cookie(garden):
    client = Client(raise_request_exception=False)
    client.cookies.load('sessionid="abcdefgh\\000ijkl"')
    problem(client.get("/api/v1/ns/garden/notes"), 400, "invalid_request")


@pytest.mark.parametrize("staff", [{"is_staff": True}, {"is_superuser": True, "is_staff": True}])
def test_s101_no_flag_of_a_user_is_a_grant(signed_in, staff):
    browser = signed_in(None, **staff)
    problem(browser.get("/api/v1/ns/garden/notes"), 403, "authority_refused")


def test_last_use_is_written_outside_archive_transactions(api):
    ivy = api("ivy")
    with connection.execute_wrapper(_Watching()) as _:
        ivy.get("notes")
    assert _Watching.statements
    ends = [n for n, sql in enumerate(_Watching.statements) if "lychd_token" in sql and sql.startswith("UPDATE")]
    reads = [n for n, sql in enumerate(_Watching.statements) if "archive_n" in sql or "lychd_grant" in sql]
    assert len(ends) == 1
    assert ends[0] > max(reads)


class _Watching:
    statements: list[str] = []

    def __call__(self, execute, sql, params, many, context):
        self.statements.append(sql)
        return execute(sql, params, many, context)


def test_a_token_of_one_namespace_is_none_of_another(garden, api):
    cast.plant("shed")
    host.withdraw("ivy", "shed", host.actions_of(["inspector"]))
    ivy = api("ivy")
    assert ivy.get("notes").status_code == 200
    problem(ivy.elsewhere("shed").get("notes"), 403, "authority_refused")


def test_s368_a_grant_of_later_does_not_open_another_namespace_to_a_token(garden, api):
    """The issuer grants in the garden; the host grants the same subject something in the shed afterwards."""
    otto, shed = garden.caller("otto"), cast.Garden(host.configure_namespace("shed", **SHED))
    bob = Api(management.issue(otto, "bob").secret)
    host.grant("bob", shed.binding, host.actions_of(["recaller", "inspector"]), by="host:tests")
    question = {"request_id": "q-1", "query": "roses"}
    problem(bob.elsewhere("shed").post("recalls", question), 403, "authority_refused")
    problem(bob.elsewhere("shed").get("notes"), 403, "authority_refused")
    problem(bob.get("/api/v1/configuration?namespace=shed"), 403, "authority_refused")
    problem(bob.get("/api/v1/configuration"), 403, "authority_refused")
    assert bob.get("/api/v1/generation-configuration?namespace=shed").status_code == 403
    # The subject itself is let in, and so is a token of the host for both.
    assert api("bob").elsewhere("shed").get("notes").status_code == 200
    both = Api(host.issue_token("bob", by="host:tests", namespaces=["shed", "garden"]).secret)
    assert both.elsewhere("shed").get("notes").status_code == 200


@pytest.mark.parametrize("authorizer", [None, "tests.api.test_who_asks.Everybody"], ids=["grants", "another"])
def test_discovery_tells_a_token_of_its_own_namespaces_alone(garden, settings, authorizer):
    for key in ("arbour", "orchard", "shed"):
        cast.plant(key)
    if authorizer is not None:
        settings.LYCHD_ARCHIVE = {**settings.LYCHD_ARCHIVE, "authorizer": authorizer}
    issued = host.issue_token("ivy", by="host:tests", namespaces=["orchard", "garden", "nowhere"])
    ivy = Api(issued.secret)
    first = ivy.get("/api/v1/configuration?limit=1").json()
    second = ivy.get(f"/api/v1/configuration?limit=1&cursor={first['next_cursor']}").json()
    told = [one["namespace"] for page in (first, second) for one in page["bindings"]]
    assert (told, second["next_cursor"]) == (["garden", "orchard"], None)


class Everybody:
    """Lets everybody do everything."""

    def decide_many(self, questions):
        return [True] * len(questions)


SHED = {"owner": cast.OWNER, "policy_revision": cast.POLICY, "by": "host:tests"}


# --- a token that ends soon ------------------------------------------------------------------------------------------


def aged(caller: Api, *, created: str, ends: str, superuser) -> None:
    """Move the life of a token; no role of the service may."""
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(
        f"UPDATE lychd_token SET created_at = now() + '{created}'::interval, expires_at = now() + '{ends}'::interval"
        " WHERE digest = %s",
        [hashlib.sha256(str(caller.secret).encode()).hexdigest()],
    )


@pytest.mark.parametrize(
    ("created", "ends", "told"),
    [
        ("-76 days", "15 days", False),
        ("-77 days", "13 days", True),
        ("-89 days", "1 hour", True),
        ("0 days", "1 day", False),
        ("-20 hours", "4 hours", True),
        ("-17 hours", "7 hours", False),
    ],
)
def test_the_holder_of_a_token_learns_that_it_ends_soon(api, superuser, created, ends, told):
    """Two weeks before, and in the last quarter of a short life."""
    ivy = api("ivy")
    aged(ivy, created=created, ends=ends, superuser=superuser)
    answer = ivy.get("notes")
    assert answer.status_code == 200
    assert ("Lychd-Token-Expires" in answer) == told
    if told:
        ends_at = Token.objects.get(principal__subject="ivy").expires_at
        assert answer["Lychd-Token-Expires"] == canonical.instant(ends_at)


def test_whoever_signed_in_has_no_token_that_ends(signed_in):
    assert "Lychd-Token-Expires" not in signed_in("ivy").get("/api/v1/ns/garden/notes")
