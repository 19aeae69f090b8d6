"""Who sees which page: nobody without signing in, nobody without a grant, and text only who may review."""

import pytest
from django.test import Client

from archive.models import Grant, Principal
from archive.models.columns import CLOCK
from tests import cast
from tests.pages import paths
from tests.pages.paths import SECRET

NOT_IN_A_NAMESPACE = {"/sign-in", "/sign-out"}


def test_without_signing_in_every_page_leads_to_the_sign_in_and_back(nursery):
    for address in paths.reading_pages(nursery):
        if address in NOT_IN_A_NAMESPACE:
            continue
        answer = Client().get(address)
        assert answer.status_code == 302, address
        assert answer["Location"].startswith("/sign-in?next="), address
        assert SECRET not in answer.content.decode()


@pytest.mark.parametrize("who", ["stranger", "charlie", "wanda"])
def test_without_a_grant_to_inspect_no_page_shows_a_row(nursery, sign_in, who):
    client = sign_in(who)
    for address in paths.namespace_pages(nursery):
        answer = client.get(address)
        told = answer.content.decode()
        assert answer.status_code == 403, address
        assert "lychd grant give" in told
        assert not any(word in told for word in (SECRET, "roses", "ferns", "thistles")), address


def test_a_namespace_that_is_not_served_looks_like_one_without_a_grant(nursery, sign_in):
    client = sign_in("charlie")
    served, unknown = client.get(f"/ns/{cast.GARDEN}"), client.get("/ns/elsewhere")
    assert (served.status_code, unknown.status_code) == (403, 403)
    assert _without_token(served) == _without_token(unknown)


def test_a_disabled_principal_is_refused_while_its_session_lasts(nursery, inspector):
    assert inspector.get(f"/ns/{cast.GARDEN}").status_code == 200
    Principal.objects.filter(subject="ivy").update(active=False)
    assert inspector.get(f"/ns/{cast.GARDEN}").status_code == 403


def test_a_withdrawn_grant_is_felt_at_the_next_page(nursery, inspector):
    Grant.objects.filter(subject="ivy").update(revoked_at=CLOCK)
    assert inspector.get(f"/ns/{cast.GARDEN}/notes").status_code == 403


def test_a_superuser_without_a_grant_sees_nothing(nursery, sign_in, django_user_model):
    client = sign_in("stranger")
    django_user_model.objects.filter(username="stranger").update(is_superuser=True, is_staff=True)
    assert client.get(f"/ns/{cast.GARDEN}/notes").status_code == 403


def test_an_inspector_sees_every_page_and_no_text(nursery, inspector):
    for address in paths.namespace_pages(nursery):
        answer = inspector.get(address)
        refused = "revocation" in address or address.rpartition("/")[2] in ("review", "search")
        assert answer.status_code == (403 if refused else 200), address
        assert SECRET not in answer.content.decode(), address


def test_a_curator_reads_the_text_where_it_is_judged_alone(nursery, curator):
    for address in paths.namespace_pages(nursery):
        answer = curator.get(address)
        shows = address.rpartition("/")[2] in {
            str(nursery.candidate.id),
            str(nursery.promoted.id),
            str(nursery.archived.id),
            "review",
        }
        assert (SECRET in answer.content.decode()) is shows, address


def test_a_curator_without_a_grant_for_receipts_is_told_so_on_the_first_page(nursery, curator):
    told = curator.get(f"/ns/{cast.GARDEN}").content.decode()
    assert "lychd grant give SUBJECT inspector" in told
    assert curator.get(f"/ns/{cast.GARDEN}/receipts").status_code == 403


def test_the_door_leads_to_the_first_namespace_with_a_grant(garden, inspector, sign_in):
    assert inspector.get("/")["Location"] == f"/ns/{cast.GARDEN}"
    assert sign_in("charlie").get("/").status_code == 403


def test_signing_in_and_out(garden, sign_in, django_user_model):
    sign_in("alice")
    user = django_user_model.objects.get(username="alice")
    user.set_password("correct horse battery staple")
    user.save()
    client = Client(enforce_csrf_checks=True)
    page = client.get("/sign-in?next=/ns/garden/notes")
    form = {"username": "alice", "next": "/ns/garden/notes", "csrfmiddlewaretoken": page.context["csrf_token"]}

    wrong = client.post("/sign-in", {**form, "password": "wrong"})
    assert wrong.status_code == 200
    assert "do not belong together" in wrong.content.decode()

    right = client.post("/sign-in", {**form, "password": "correct horse battery staple"})
    assert right["Location"] == "/ns/garden/notes"
    assert client.get("/sign-out").status_code == 405
    token = client.get("/ns/garden").context["csrf_token"]
    assert client.post("/sign-out", {"csrfmiddlewaretoken": token})["Location"] == "/sign-in"
    assert client.get("/ns/garden").status_code == 302


def test_signing_in_never_leads_to_another_site(garden, sign_in, django_user_model):
    sign_in("alice")
    user = django_user_model.objects.get(username="alice")
    user.set_password("correct horse battery staple")
    user.save()
    form = {"username": "alice", "password": "correct horse battery staple", "next": "https://elsewhere.example/"}
    assert Client().post("/sign-in", form)["Location"] == "/"


def _without_token(answer):
    return "\n".join(line for line in answer.content.decode().splitlines() if "csrfmiddlewaretoken" not in line)
