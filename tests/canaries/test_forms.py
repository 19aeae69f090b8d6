"""The search itself: a canary that cannot be found when it is there proves nothing by its absence."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from tests.canaries.canary import Canary, search

BURIED = {
    "as it is": lambda text: text,
    "in capitals": lambda text: text.upper(),
    "as JSON": json.dumps,
    "as JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "in an address": quote,
    "in a form": quote_plus,
    "as bytes of Python": lambda text: repr(text.encode()),
    "as hex": lambda text: text.encode().hex(),
    "as a bytea": lambda text: "\\x" + text.encode().hex().upper(),
    "as base64": lambda text: base64.b64encode(text.encode()).decode(),
    "as base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "as a lexeme": lambda text: text.split()[1],
    "in a row of PostgreSQL": lambda text: '(1,"' + text.replace('"', '""') + '",2)',
}


@pytest.mark.parametrize("how", BURIED)
@pytest.mark.parametrize("before", ["", "x", "xy"])
@pytest.mark.parametrize("after", ["", "x", "xy"])
def test_a_canary_is_found_however_it_is_buried(how, before, after):
    canary = Canary.sentence("note text")
    assert canary.found_in(f"... {BURIED[how](before + canary.text + after)} ...")


@pytest.mark.parametrize("offset", range(6))
def test_base64_is_found_at_every_alignment_even_of_the_word_alone(offset):
    canary = Canary.password("password")
    encoded = base64.b64encode(b"\xff" * offset + canary.text.encode() + b"\xff" * 5)
    assert canary.found_in(encoded)


def test_the_accented_word_alone_is_found_in_every_escape():
    canary = Canary.sentence("note text")
    accented = canary.pieces[1]
    for buried in (
        *(json.dumps(accented), quote(accented), repr(accented.encode()), accented.encode("latin-1")),
        *(accented.encode("ascii", "xmlcharrefreplace"), accented.encode()),
    ):
        assert canary.found_in(buried)


def test_what_is_not_there_is_not_found():
    one, other = Canary.sentence("one"), Canary.sentence("other")
    assert not search([other], one.text)
    assert set(search([one, other], one.text)) == {one}
    assert not other.found_in("")


def test_a_canary_does_not_give_itself_away():
    canary = Canary.sentence("note text")
    assert not canary.found_in(repr(canary))
