"""Canonical bytes and digests, held against a second implementation and against values that were written down."""

import hashlib
import json
import math
import random
import struct
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import canonical
from archive.bindings import Binding
from archive.canonical import NotCanonical
from archive.lifecycle import Reason, State
from archive.records import projection_digest
from archive.requests import Intake, LexicalRecall, Transition

# --- a second implementation, by the letter of RFC 8785 --------------------------------------------------------------

SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def written(value: object) -> str:
    """Canonical JSON, written letter by letter."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return f"{value:d}"
    if isinstance(value, str):
        letters = (SHORT.get(one) or (f"\\u{ord(one):04x}" if one < " " else one) for one in value)
        return '"' + "".join(letters) + '"'
    if isinstance(value, dict):
        members = (
            f"{written(key)}:{written(value[key])}" for key in sorted(value, key=lambda key: key.encode("utf-16-be"))
        )
        return "{" + ",".join(members) + "}"
    assert isinstance(value, list | tuple)
    return "[" + ",".join(written(one) for one in value) + "]"


LETTERS = [
    *map(chr, range(0x80)),
    *"äßñœ¿\u00a0\u00ad\u0301",
    *"\u2028\u2029\u200b\ufeff\ufffe\uffff\ud7ff\ue000",
    *"漢字ひらがなไทยعربעברכ한국",
    *"🌹👩‍🌾🏳️‍🌈\U0001f1e9\U0010ffff\U00010000",
]


def random_document(dice: random.Random, depth: int = 0) -> object:
    kind = dice.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return dice.choice([None, True, False])
    if kind in (1, 2):
        return dice.choice([0, -1, 1, 2**53 - 1, -(2**53) + 1, dice.randrange(-(10**6), 10**6), dice.randrange(2**53)])
    if kind in (3, 4, 5):
        return "".join(dice.choices(LETTERS, k=dice.randrange(12)))
    if kind == 6:
        return [random_document(dice, depth + 1) for _ in range(dice.randrange(5))]
    keys = ["".join(dice.choices(LETTERS[:128], k=dice.randrange(6))) for _ in range(dice.randrange(6))]
    return {key: random_document(dice, depth + 1) for key in keys}


def test_thirty_thousand_documents_come_out_as_a_second_implementation_writes_them():
    for seed in range(30_000):
        document = random_document(random.Random(seed))
        encoded = canonical.encode(document)
        assert encoded == written(document).encode("utf-8"), f"seed {seed}"
        assert json.loads(encoded) == document, f"seed {seed}"


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner),
    max_leaves=20,
)


@given(documents)
def test_any_document_does(document):
    assert canonical.encode(document) == written(document).encode("utf-8")


@given(documents, documents)
def test_two_documents_have_the_same_bytes_only_if_they_are_the_same(one, other):
    alike = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical.encode(one) == canonical.encode(other)) is alike


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # The string of RFC 8785, 3.2.2.
        ('\u20ac$\u000f\nA\'B"\\\\"/', r'"€$\u000f' + r"\nA'B\"\\\\\"/" + '"'),
        ("\b\t\n\f\r", r'"\b\t\n\f\r"'),
        ("\x00\x0b\x1f", r'"\u0000\u000b\u001f"'),
        ("\x7f", '"\x7f"'),
        ("\u2028\u2029", '"\u2028\u2029"'),
        ("</script>", '"</script>"'),
        ("\ufeff\u0301é", '"\ufeff\u0301é"'),
        ({"b": 1, "a": 2, "": 3, "B": 4, "\n": 5}, r'{"":3,"\n":5,"B":4,"a":2,"b":1}'),
        ({"literals": [None, True, False], "numbers": [0, -0, 10, 333333333333333]}, None),
        ([], "[]"),
        ({}, "{}"),
        ((1, [2]), "[1,[2]]"),
        (2**53 - 1, "9007199254740991"),
        (1 - 2**53, "-9007199254740991"),
    ],
    ids=repr,
)
def test_the_vectors_of_the_standard(value, expected):
    expected = expected or '{"literals":[null,true,false],"numbers":[0,0,10,333333333333333]}'
    assert canonical.encode(value).decode("utf-8") == expected


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        math.nan,
        math.inf,
        2**53,
        -(2**53),
        b"bytes",
        bytearray(b"bytes"),
        {1: "key"},
        {None: 1},
        {"ä": 1},
        {"a": {"b": [{"c": 0.5}]}},
        "\ud800",
        ["\udfff"],
        {"a": "\ud83d"},
        {1, 2},
        object,
        datetime(2026, 1, 1, tzinfo=UTC),
        UUID(int=1),
        MappingProxyType({}),
    ],
    ids=repr,
)
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(NotCanonical):
        canonical.encode(value)


# --- reals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "f64:0000000000000000"),
        (-0.0, "f64:0000000000000000"),
        (0, "f64:0000000000000000"),
        (1, "f64:3ff0000000000000"),
        (1.0, "f64:3ff0000000000000"),
        (-2, "f64:c000000000000000"),
        (0.1, "f64:3fb999999999999a"),
        (5e-324, "f64:0000000000000001"),
        (-5e-324, "f64:8000000000000001"),
        (1.7976931348623157e308, "f64:7fefffffffffffff"),
        (math.pi, "f64:400921fb54442d18"),
    ],
)
def test_a_real_is_written_by_its_bits(number, text):
    assert canonical.real(number) == text
    assert canonical.read_real(text) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_real_comes_back_and_only_the_sign_of_zero_is_lost(number):
    text = canonical.real(number)
    assert text == "f64:" + struct.pack(">d", number or 0.0).hex()
    assert struct.pack(">d", canonical.read_real(text)) == struct.pack(">d", number or 0.0)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_real_that_is_not_finite_is_refused(number):
    with pytest.raises(NotCanonical):
        canonical.real(number)


@pytest.mark.parametrize(
    "text", ["", "f64:", "3ff0000000000000", "f32:3ff0000000000000", "f64:3ff0", "f64:" + "0" * 17]
)
def test_what_is_no_written_real_is_refused(text):
    with pytest.raises(NotCanonical):
        canonical.read_real(text)


# --- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05.000000Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006Z"),
        (datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=5, minutes=45))), "2025-12-31T18:45:00.000000Z"),
        (
            datetime(2025, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=-1))),
            "2026-01-01T00:59:59.999999Z",
        ),
        (datetime(33, 4, 3, 15, tzinfo=UTC), "0033-04-03T15:00:00.000000Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_a_time_is_written_in_utc_with_six_digits(moment, text):
    assert canonical.instant(moment) == text


def test_a_time_without_an_offset_is_refused():
    with pytest.raises(NotCanonical):
        canonical.instant(datetime(2026, 1, 1))  # noqa: DTZ001


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_same_moment_is_written_alike_from_everywhere(moment):
    try:
        elsewhere = moment.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    except OverflowError:
        return
    assert canonical.instant(elsewhere) == canonical.instant(moment)
    assert len(canonical.instant(moment)) == 27


# --- digests: one worked example of each kind, computed with hashlib and json alone and written down ------------------

TEXT = "Grüße, \u2028“roses”\x7f\t\\ 🌹"
NOTE = UUID("0b5e3f1c-1f0a-4c67-9d0a-2f5f0a9c1e11")
TEXT_DIGEST = "ff76b33a2881f6cdde01894c31bece49cbcd02d0c06e9e8c598043e536ea9aa6"
BINDING = Binding("garden", "estate", "policy-1")
TAKEN_IN = Intake(
    request_id="r1",
    source_key="letters/roses",
    source_revision="2",
    text=TEXT,
    asserted_origin="letters:1",
    kind="letter",
    retention_class="short",
    retain_until=datetime(2030, 1, 2, 4, 4, 5, 6, tzinfo=timezone(timedelta(hours=1))),
    observed_at=datetime(999, 12, 31, 23, 59, 59, tzinfo=UTC),
)


def test_the_digest_of_a_text():
    assert canonical.text_digest(TEXT) == TEXT_DIGEST


def test_the_digest_of_a_query():
    expected = "a35b980e2481c5b494f45b21dcbec334128d1d1c54d29c2c42d2e2ba16a6f5c3"
    assert canonical.query_digest("Wann blühen Rosen?") == expected


def test_the_digests_of_an_intake():
    material = TAKEN_IN.material("garden")
    assert (material["char_count"], material["byte_count"]) == (20, 31)
    assert (
        canonical.digest_of(canonical.INTAKE_MATERIAL, material)
        == "f05d7831ffc803a3964b23055297a92b1c2486d3eec080707fcead4600d6a8e7"
    )
    assert (
        canonical.digest_of(canonical.INTAKE_REQUEST, {"request_id": "r1", "subject": "wanda", "material": material})
        == "cdb00205849af7dad06e83f207fe87b74866bdd1f27b177ea0a587678e4338f6"
    )


def test_the_digest_of_a_binding():
    assert BINDING.digest == "6010a64ba2406f61ade8ddb5fea4e0b194dd63234649823a3ca0c67d5545e6d1"
    english = Binding("garden", "estate", "policy-1", text_configuration="english", second_person=True)
    assert english.digest == BINDING.digest


def test_the_digest_of_a_lexical_request():
    wanted = LexicalRecall("q1", "Wann blühen Rosen?", min_rank=0.25)
    assert wanted.digest(BINDING, "bob") == "7e48fe996afc74658ac937aa12fee5a353620bc0128715e1c232164f2f3d9239"


def test_a_whole_number_and_its_real_are_one_request():
    one, other = (LexicalRecall("q1", "roses", min_rank=rank) for rank in (1, 1.0))
    assert one.digest(BINDING, "bob") == other.digest(BINDING, "bob")
    zero, minus = (LexicalRecall("q1", "roses", min_rank=rank) for rank in (0.0, -0.0))
    assert zero.digest(BINDING, "bob") == minus.digest(BINDING, "bob")


def test_the_digest_of_a_projection():
    digest = projection_digest(
        note_id=NOTE,
        namespace="garden",
        source_key="letters/roses",
        source_revision="2",
        text_digest=TEXT_DIGEST,
        char_count=20,
        classification="public",
        asserted_origin="letters:1",
    )
    assert digest == "a7cfade4fda7985d193b495d4b18f35f4792c55dde8517bbfb6f53d410e801c9"


def test_the_digests_of_a_transition():
    plain = Transition(NOTE, State.PROMOTED, 1)
    reasoned = Transition(NOTE, State.PROMOTED, 1, Reason.OUTDATED)
    assert plain.request_digest() == "47c977831528cd25ae756798afb6d26c0f4ad70872e6c28a0e55f0e480ced98b"
    assert reasoned.request_digest() == "d0055261f727d6953bb2fcc98c058fa24b0269f9a907c2fd2e83262828d48a13"
    assert (
        plain.object_digest(text_digest=TEXT_DIGEST, from_state="candidate")
        == "41010e8d79e5dbb52e3661439aa8404f23844b5bf8849bffa890231b31c5bafd"
    )


def test_the_digest_of_a_lookup():
    assert (
        canonical.lookup_digest("resolve", "garden", {"request_id": "q1"})
        == "a6692052e3d6267ee567fe7cda291ba0cb226b72037df3fe853e70ff7ef48de1"
    )


def test_the_digest_of_a_receipt():
    receipt = {"schema": 1, "request_id": "q1", "selected": [], "created_at": "2026-01-02T03:04:05.678901Z"}
    assert (
        canonical.digest_of(canonical.RECEIPT_1, receipt)
        == "cb5e343f50fba2367d1f23f53525bfabf7b79108ba5576de4444befe8681fa2c"
    )


def test_a_digest_has_its_domain_and_a_nul_in_front():
    assert canonical.digest("d", b"x") == hashlib.sha256(b"d\x00x").hexdigest()
    assert canonical.text_digest("roses") != canonical.query_digest("roses")


@given(st.text(st.characters(codec="utf-8"), max_size=50))
def test_a_text_is_digested_as_it_is(text):
    assert canonical.text_digest(text) == hashlib.sha256(b"lychd.text@1\x00" + text.encode()).hexdigest()


def test_digests_are_compared_whole():
    assert canonical.same(TEXT_DIGEST, TEXT_DIGEST)
    assert not canonical.same(TEXT_DIGEST, TEXT_DIGEST.upper())
    assert not canonical.same(TEXT_DIGEST, TEXT_DIGEST[:-1])
    assert canonical.identity(NOTE) == "0b5e3f1c-1f0a-4c67-9d0a-2f5f0a9c1e11"
