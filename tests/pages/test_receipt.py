"""The page of a receipt: checked on the spot, downloadable, and refused when it does not match itself."""

import json

from archive import receipts
from tests import cast
from tests.pages.paths import SECRET

NS = f"/ns/{cast.GARDEN}"


def test_a_receipt_shows_its_selection_and_its_digest(nursery, inspector):
    answer = inspector.get(f"{NS}/receipts/q-roses")
    page = answer.content.decode()
    receipt = answer.context["receipt"]
    assert receipts.verify(receipt)
    assert receipt["receipt_digest"] in page
    assert "matches" in page
    assert f'href="{NS}/notes/{nursery.promoted.id}"' in page
    assert f"lychd receipt verify receipt-{receipt['receipt_id']}.json" in page
    assert SECRET not in page


def test_what_was_left_out_is_named(nursery, bob, inspector):
    cast.asked(bob, "roses", request_id="q-small", char_budget=1)
    page = inspector.get(f"{NS}/receipts/q-small").content.decode()
    assert "Left out" in page
    assert "A miss" in page


def test_the_receipts_before_and_after_are_led_to(nursery, bob, inspector):
    for number in (1, 2):
        cast.asked(bob, request_id=f"q-later-{number}")
    first, middle, last = (
        inspector.get(f"{NS}/receipts/{name}").content.decode() for name in ("q-roses", "q-later-1", "q-later-2")
    )
    assert f'rel="next" href="{NS}/receipts/q-later-1"' in first
    assert 'rel="prev"' not in first
    assert f'rel="prev" href="{NS}/receipts/q-roses"' in middle
    assert f'rel="next" href="{NS}/receipts/q-later-2"' in middle
    assert 'rel="next"' not in last


def test_a_miss_is_an_answer(nursery, bob, inspector):
    cast.asked(bob, "zeppelin", request_id="q-miss")
    answer = inspector.get(f"{NS}/receipts/q-miss")
    assert answer.status_code == 200
    assert "A miss" in answer.content.decode()


def test_the_file_is_what_the_offline_check_takes(nursery, inspector):
    answer = inspector.get(f"{NS}/receipts/q-roses/file")
    receipt = json.loads(answer.content)
    assert answer["Content-Type"] == "application/json"
    assert answer["Content-Disposition"] == f'attachment; filename="receipt-{receipt["receipt_id"]}.json"'
    assert "no-store" in answer["Cache-Control"]
    assert receipts.verify(receipt)


def test_a_receipt_that_does_not_match_itself_is_not_shown(nursery, inspector, superuser):
    with superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        superuser.execute("""UPDATE archive_recall SET receipt = jsonb_set(receipt, '{subject}', '"mallory"')""")
    for address in ("", "/file"):
        answer = inspector.get(f"{NS}/receipts/q-roses{address}")
        assert answer.status_code == 500
        assert "does not match its digest" in answer.content.decode()
        assert "mallory" not in answer.content.decode()
    assert "does not match" in inspector.get(f"{NS}/receipts").content.decode()
    assert "does not match" in inspector.get(NS).content.decode()


def test_a_receipt_that_is_not_there_is_a_page_of_its_own(nursery, inspector):
    answer = inspector.get(f"{NS}/receipts/nothing")
    assert answer.status_code == 404
    assert "No such receipt" in answer.content.decode()


def test_the_page_of_a_receipt_costs_so_many_queries(nursery, inspector, django_assert_num_queries):
    inspector.get(NS)
    with django_assert_num_queries(13):
        inspector.get(f"{NS}/receipts/q-roses")
