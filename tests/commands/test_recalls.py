"""Recall, resolution and receipts on the command line; an exported receipt is verified with no database at all."""

import io
import json
import subprocess
import sys

import pytest

from lychd.environment import CHECKOUT
from tests import cast
from tests.cast import GARDEN

AS_BOB = ("--as", "bob", "--namespace", GARDEN)


@pytest.fixture
def receipt(alice, bob):
    cast.promoted(alice, "Roses want morning sun.")
    return cast.asked(bob, "roses", request_id="about-roses").receipt


def test_a_recall_leaves_a_receipt_and_tells_how_to_read_it(lychd, alice, bob):
    cast.promoted(alice, "Roses want morning sun.")
    ran = lychd("recall", "roses", "sun", "--request-id", "q-roses", *AS_BOB)
    assert ran.code == 0
    assert ran.out.startswith("published: selected for bob")
    assert "lychd resolve q-roses" in ran.out
    assert "morning" not in ran.out

    again = lychd("recall", "roses", "sun", "--request-id", "q-roses", *AS_BOB, "--json").document
    assert again["outcome"] == "replayed"
    assert again["receipt"]["selected"][0]["source_key"] == "roses"


def test_a_miss_is_an_answer(lychd, alice):
    cast.promoted(alice)
    ran = lychd("recall", "submarine", *AS_BOB, "--json")
    assert ran.code == 0
    assert ran.document["receipt"]["outcome"] == "miss"


def test_a_recall_may_resolve_at_once(lychd, alice):
    cast.promoted(alice, "Roses want morning sun.")
    ran = lychd("recall", "roses", "--text", *AS_BOB)
    assert "| Roses want morning sun." in ran.out
    document = lychd("recall", "roses", "--text", *AS_BOB, "--json").document
    assert document["sources"][0]["data"] == {"text": "Roses want morning sun."}


def test_a_question_may_come_on_stdin(lychd, alice, monkeypatch):
    cast.promoted(alice)
    monkeypatch.setattr(sys, "stdin", io.StringIO("roses"))
    assert lychd("recall", "-", *AS_BOB, "--json").document["receipt"]["outcome"] == "selected"
    monkeypatch.setattr(sys, "stdin", io.StringIO("r" * 5_000))
    assert lychd("recall", "-", *AS_BOB).code == 2


def test_an_identity_used_for_another_question_is_a_conflict(lychd, receipt):
    ran = lychd("recall", "tulips", "--request-id", "about-roses", *AS_BOB, "--json")
    assert (ran.code, ran.document["code"]) == (3, "request_conflict")


def test_budgets_are_checked(lychd, receipt):
    ran = lychd("recall", "roses", "--top-k", 21, "--min-rank", "nan", *AS_BOB, "--json")
    assert ran.code == 2
    assert [fault["pointer"] for fault in ran.document["errors"]] == ["/top_k", "/min_rank"]


def test_resolution_gives_the_text(lychd, receipt):
    ran = lychd("resolve", "about-roses", *AS_BOB)
    assert ran.code == 0
    assert "1. roses, revision 1" in ran.out
    assert "  | Roses want morning sun." in ran.out
    document = lychd("resolve", "about-roses", *AS_BOB, "--json").document
    assert document["receipt_id"] == receipt["receipt_id"]


def test_a_resolution_that_no_longer_stands_is_a_conflict(lychd, alice, receipt):
    note = receipt["selected"][0]
    assert lychd("archive", note["note_id"], "--version", 2, "--as", "alice", "--namespace", GARDEN).code == 0
    ran = lychd("resolve", "about-roses", *AS_BOB, "--json")
    assert (ran.code, ran.document["code"]) == (3, "selection_stale")


def test_a_receipt_is_shown_to_whoever_may_inspect(lychd, receipt):
    assert lychd("receipt", "show", "about-roses", *AS_BOB).code == 2
    ran = lychd("receipt", "show", "about-roses", "--as", "ivy", "--namespace", GARDEN, "--json")
    assert ran.document == {"receipt": receipt, "current_eligibility": "not_assessed"}
    assert "not assessed" in lychd("receipt", "show", "about-roses", "--as", "ivy", "--namespace", GARDEN).out
    assert lychd("receipt", "show", "never", "--as", "ivy", "--namespace", GARDEN).code == 2


# --- verify ----------------------------------------------------------------------------------------------------------

# An installation whose database and settings would both refuse: a verification must not notice.
NOWHERE = {"DATABASE_URL": "mysql://nobody", "LYCHD_ENV": "nonsense"}


def test_a_receipt_verifies_with_no_database_and_no_settings(outside, receipt, tmp_path):
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt))
    ran = outside("receipt", "verify", file, "--json", **NOWHERE)
    assert ran.code == 0, ran.err
    assert ran.document["verified"] is True
    assert ran.document["receipt_digest"] == receipt["receipt_digest"]
    assert not (tmp_path / "state").exists()


def test_verification_loads_nothing_of_the_framework():
    program = (
        "import sys; from lychd import console; code = console.run(['receipt', 'verify', '/nowhere']);"
        " print(code, sorted({'django', 'psycopg', 'rest_framework'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=CHECKOUT)
    assert said.stdout.strip() == "64 []"


def test_the_whole_answer_of_a_recall_is_as_good(lychd, receipt, tmp_path):
    file = tmp_path / "answer.json"
    file.write_text(lychd("recall", "roses", *AS_BOB, "--json").out)
    assert lychd("receipt", "verify", file).code == 0


def test_any_change_of_a_receipt_is_noticed(lychd, receipt, tmp_path):
    file = tmp_path / "receipt.json"
    for name in receipt:
        if name in ("schema", "receipt_digest"):
            continue
        file.write_text(json.dumps({**receipt, name: "changed"}))
        ran = lychd("receipt", "verify", file, "--json")
        assert (ran.code, ran.document["code"]) == (4, "integrity_failure"), name
    file.write_text(json.dumps({**receipt, "more": 1}))
    assert lychd("receipt", "verify", file).code == 4
    file.write_text(json.dumps({**receipt, "receipt_digest": "0" * 64}))
    assert lychd("receipt", "verify", file).code == 4


@pytest.mark.parametrize(
    "malformed",
    [
        b"",
        b"not json",
        b"[]",
        b'"text"',
        b"{}",
        b'{"receipt_digest": 1}',
        b'{"schema": 9, "receipt_digest": "x"}',
        b'{"schema": true, "receipt_digest": "x"}',
        b'{"schema": 1, "schema": 1, "receipt_digest": "x"}',
        b'{"schema": 1, "score": NaN, "receipt_digest": "x"}',
        b'{"schema": 1, "name": "\\ud800", "receipt_digest": "x"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=lambda raw: raw[:24].decode("ascii", "replace") or "empty",
)
def test_a_malformed_file_is_refused(lychd, malformed, tmp_path):
    file = tmp_path / "receipt.json"
    file.write_bytes(malformed)
    ran = lychd("receipt", "verify", file, "--json")
    assert (ran.code, ran.document["code"]) == (2, "invalid_request")


def test_a_receipt_may_come_on_stdin(lychd, receipt, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(receipt).encode())))
    assert lychd("receipt", "verify", "-").code == 0


def test_a_file_that_is_not_there_is_wrong_usage(lychd):
    assert lychd("receipt", "verify", "/nowhere").code == 64
