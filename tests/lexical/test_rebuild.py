"""A rebuild reads the truth again, in slices, and is the only way to another lexer."""

import psycopg
import pytest

from archive import lexical
from archive.lifecycle import State
from archive.models import Namespace
from archive.operations import rebuild
from archive.operations.rebuild import rebuild_lexical
from archive.refusals import ArchiveTimeout, NamespaceAbsent
from archive.transactions import DatabaseFault, held
from tests.lexical import shelf
from tests.lexical.shelf import rows

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = [f"the roses were blooming {number} 日本語" for number in range(23)] + ["...", "of the"]


def again(namespace):
    return Namespace.objects.get(id=namespace.id)


def test_a_new_configuration_is_answered_after_the_rebuild():
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)
    with shelf.reconfigured(garden, "english"):
        pass
    told = []

    rebuilt = rebuild_lexical("garden", slice_size=4, progress=lambda done, of: told.append((done, of)))

    garden = again(garden)
    assert (garden.lexical_state, garden.lexer_fingerprint) == ("ready", lexical.fingerprint("english"))
    assert shelf.postings(garden) == shelf.truth(garden)
    assert lexical.figures(garden.id) == lexical.Figures(*shelf.true_figures(garden))
    assert (rebuilt.notes, rebuilt.total_length) == shelf.true_figures(garden)
    assert (rebuilt.text_configuration, rebuilt.lexer_fingerprint) == ("english", garden.lexer_fingerprint)
    assert not rebuilt.drifted
    assert told[-1] == (25, 25)
    assert len(told) == 7
    assert len(lexical.rank(garden, "a rose blooms", top_k=20, min_rank=0).rows) == 20


def test_a_rebuild_without_need_changes_nothing():
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)
    before = shelf.postings(garden)
    for _ in range(2):
        rebuilt = rebuild_lexical("garden")
    assert shelf.postings(garden) == before
    assert not rebuilt.drifted
    assert again(garden).lexical_state == "ready"


def test_an_empty_namespace_is_rebuilt_too():
    garden = shelf.retained("garden")
    shelf.admitted(garden, ["roses"])
    assert rebuild_lexical("garden").notes == 0
    assert lexical.figures(garden.id) == lexical.Figures(0, 0)


def test_a_namespace_that_nothing_was_taken_into_is_absent():
    with pytest.raises(NamespaceAbsent):
        rebuild_lexical("nowhere")


def test_drift_is_mended_and_told(owner):
    garden, kitchen = shelf.retained("garden"), shelf.retained("kitchen")
    shelf.promoted(garden, TEXTS)
    shelf.promoted(kitchen, ["bread"])
    owner.execute("UPDATE archive_corpus SET notes = 3, total_length = 5 WHERE namespace_id = %s", [garden.id])
    owner.execute(
        "DELETE FROM archive_posting WHERE lexeme = 'roses' AND namespace_id = %s AND note_number %% 2 = 0", [garden.id]
    )
    # Words of a note that is not there, before, between and after those that are.
    owner.execute(
        "INSERT INTO archive_posting SELECT %s, 'stray', number, 1, 1 FROM unnest(ARRAY[-5, 0, 99999]) AS number",
        [garden.id],
    )

    assert rebuild_lexical("garden", slice_size=3).drifted

    assert shelf.postings(garden) == shelf.truth(garden)
    assert rows("SELECT count(*) FROM archive_posting WHERE lexeme = 'stray'") == [(0,)]
    assert lexical.figures(garden.id) == lexical.Figures(*shelf.true_figures(garden))
    assert lexical.figures(kitchen.id) == lexical.Figures(1, 1)


def test_decisions_between_two_slices_are_kept():
    garden = shelf.retained("garden")
    ids = shelf.promoted(garden, TEXTS)
    late = shelf.admitted(garden, ["roses come late"])
    with shelf.reconfigured(garden, "english"):
        pass
    steps = iter(
        [
            lambda: shelf.moved(garden, late, State.CANDIDATE, State.PROMOTED),
            lambda: shelf.moved(garden, ids[:1], State.PROMOTED, State.REVOKED),
            lambda: shelf.moved(garden, ids[-1:], State.PROMOTED, State.ARCHIVED),
        ]
    )

    rebuild_lexical("garden", slice_size=5, progress=lambda done, of: next(steps, lambda: None)())

    garden = again(garden)
    assert shelf.postings(garden) == shelf.truth(garden)
    assert lexical.figures(garden.id) == lexical.Figures(*shelf.true_figures(garden))


def test_a_rebuild_that_is_overtaken_by_a_new_configuration_starts_over():
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)
    overtaken = []

    def overtake(done, of):
        if not overtaken:
            overtaken.append(done)
            with shelf.reconfigured(garden, "english"):
                pass

    rebuilt = rebuild_lexical("garden", slice_size=10, progress=overtake)

    garden = again(garden)
    assert overtaken == [10]
    assert (rebuilt.text_configuration, garden.lexical_state) == ("english", "ready")
    assert shelf.postings(garden) == shelf.truth(garden)


def test_two_rebuilds_at_once_end_well():
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)
    inner = []

    def meet(done, of):
        if not inner:
            inner.append(rebuild_lexical("garden", slice_size=7))

    outer = rebuild_lexical("garden", slice_size=10, progress=meet)

    assert inner == [outer]
    assert again(garden).lexical_state == "ready"
    assert shelf.postings(garden) == shelf.truth(garden)


def test_a_slice_that_takes_too_long_is_cut_smaller(monkeypatch):
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)
    slice_of, sizes = rebuild._slice, []

    def slow(namespace, after, size):
        sizes.append(size)
        found = slice_of(namespace, after, size)
        if size > 2:
            raise ArchiveTimeout
        return found

    monkeypatch.setattr(rebuild, "_slice", slow)

    assert rebuild_lexical("garden", slice_size=8).notes == len(TEXTS)
    assert sizes[:3] == [8, 4, 2]
    assert again(garden).lexical_state == "ready"
    assert shelf.postings(garden) == shelf.truth(garden)


def test_a_note_that_alone_takes_too_long_ends_the_rebuild(monkeypatch):
    shelf.promoted(shelf.retained("garden"), TEXTS)

    def endless(namespace, after, size):
        raise ArchiveTimeout

    monkeypatch.setattr(rebuild, "_slice", endless)
    with pytest.raises(ArchiveTimeout):
        rebuild_lexical("garden")


def test_an_interrupted_rebuild_stays_unready_and_is_taken_up_again(monkeypatch):
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)

    def stop(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild_lexical("garden", slice_size=10, progress=stop)
    assert again(garden).lexical_state == "rebuilding"

    rebuild_lexical("garden", slice_size=10)
    assert again(garden).lexical_state == "ready"
    assert shelf.postings(garden) == shelf.truth(garden)


@pytest.mark.parametrize("function", ["archive_rebuild_slice(%s, 0, 10)", "archive_rebuild_finish(%s)"])
def test_the_halves_of_a_rebuild_refuse_without_their_hold(serving, function):
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)
    before = shelf.postings(garden)

    with pytest.raises(psycopg.Error) as refusal:
        serving.execute(f"SELECT * FROM {function}", [garden.id])
    assert refusal.value.sqlstate == "LY005"
    # Held, but the namespace answers recalls at this moment.
    with pytest.raises(DatabaseFault) as fault, held(garden.key):
        rows(f"SELECT * FROM {function}", garden.id)
    assert fault.value.sqlstate == "LY005"
    assert shelf.postings(garden) == before


def test_a_slice_is_no_larger_than_asked():
    garden = shelf.retained("garden")
    shelf.promoted(garden, TEXTS)
    with shelf.reconfigured(garden, "english"):
        pass
    with held(garden.key) as namespace:
        after, done = rebuild._slice(namespace, 0, 10)
        assert done == 10
        assert rebuild._slice(namespace, after, 20) == (2**63 - 1, 15)
        assert rebuild._slice(namespace, after, 15)[1] == 15
