"""Ingest: whatever lies in a folder comes in once, under names that fit, and each that cannot is reported."""

import hashlib
import io
import json
import os
import sys

import pytest

from archive import canonical, limits
from archive.models import IntakeRequest, Note
from archive.operations import host
from archive.requests import Intake
from tests import cast
from tests.cast import GARDEN

AS_WANDA = ("--as", "wanda", "--namespace", GARDEN)


@pytest.fixture
def ingest(lychd, garden):
    def run(path, *more, by="wanda"):
        ran = lychd("ingest", path, "--as", by, "--namespace", GARDEN, "--json", *more)
        return ran.code, {one["place"]: one for one in ran.document["items"]}, ran.document

    return run


@pytest.fixture
def folder(tmp_path):
    shelf = tmp_path / "shelf"
    shelf.mkdir()

    def put(**texts: str | bytes):
        for name, text in texts.items():
            file = shelf / name.replace("__", "/").replace("_md", ".md")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return shelf

    return put


def revision(number: int, text: str) -> str:
    return f"{number}-{canonical.text_digest(text)[:12]}"


def outcomes(found):
    return {place: one["outcome"] for place, one in found.items()}


def test_a_folder_comes_in_sorted_as_candidates(ingest, folder):
    shelf = folder(b_md="beta", a_md="alpha", deep__c_md="gamma")
    (shelf / "d.txt").write_text("delta")
    code, found, document = ingest(shelf)
    assert code == 0
    assert list(found) == ["a.md", "b.md", "d.txt", "deep/c.md"]
    assert document["totals"] == {"created": 4}
    assert set(Note.objects.values_list("source__source_key", "source_revision", "state")) == {
        ("a.md", revision(1, "alpha"), "candidate"),
        ("b.md", revision(1, "beta"), "candidate"),
        ("d.txt", revision(1, "delta"), "candidate"),
        ("deep/c.md", revision(1, "gamma"), "candidate"),
    }


def test_the_text_is_taken_as_it_is(ingest, folder):
    text = "\ufeff  two\r\nlines \u00e9 e\u0301\n\n"
    ingest(folder(a_md=text))
    assert Note.objects.get().text == text


def test_a_repeat_sends_nothing(ingest, folder):
    shelf = folder(a_md="alpha", b_md="beta")
    ingest(shelf)
    code, found, _ = ingest(shelf)
    assert (code, outcomes(found)) == (0, {"a.md": "unchanged", "b.md": "unchanged"})
    assert IntakeRequest.objects.count() == 2


def test_changed_and_returned_texts_get_new_revisions(ingest, folder):
    for number, text in enumerate(["alpha", "beta", "alpha", "beta"], start=1):
        code, found, _ = ingest(folder(a_md=text))
        assert code == 0
        assert found["a.md"]["source_revision"] == revision(number, text)
        assert found["a.md"]["outcome"] == "created"
    assert Note.objects.count() == 4


def test_a_revision_that_others_named_counts(ingest, folder, wanda):
    cast.admitted(wanda, "older", source="a.md", revision="2031-spring")
    cast.admitted(wanda, "old", source="a.md", revision="7")
    _, found, _ = ingest(folder(a_md="new"))
    assert found["a.md"]["source_revision"] == revision(8, "new")


def test_what_others_took_in_is_not_counted_whatever_the_writer_may_see(ingest, folder, garden, alice):
    """A revision is named by what its writer took in; a grant that comes or goes renames nothing."""
    cast.admitted(alice, "of alice", source="a.md", revision="7")
    _, found, _ = ingest(folder(a_md="first"))
    assert found["a.md"]["source_revision"] == revision(1, "first")

    host.grant("wanda", garden.binding, host.actions_of(["inspector"]), by="host:tests")
    _, found, _ = ingest(folder(a_md="of alice"))
    assert (found["a.md"]["outcome"], found["a.md"]["source_revision"]) == ("created", revision(2, "of alice"))


def test_a_revoked_text_is_refused_and_not_brought_back(ingest, folder, alice):
    shelf = folder(a_md="secret")
    _, found, _ = ingest(shelf)
    note = Note.objects.get()
    cast.revoke(alice, cast.Transition(note.id, cast.State.REVOKED, 1))

    code, found, _ = ingest(shelf)
    assert (code, found["a.md"]["outcome"], found["a.md"]["code"]) == (2, "refused", "source_revision_revoked")

    # Nor after another text in between.
    code, found, _ = ingest(folder(a_md="harmless"))
    assert (code, found["a.md"]["outcome"]) == (0, "created")
    code, found, _ = ingest(folder(a_md="secret"))
    assert (code, found["a.md"]["code"]) == (2, "source_revision_revoked")
    assert Note.objects.count() == 2


def test_another_writer_meets_the_same_revision(ingest, folder, garden):
    shelf = folder(a_md="alpha")
    ingest(shelf)
    code, found, _ = ingest(shelf, by="alice")
    assert (code, found["a.md"]["outcome"]) == (0, "existing")
    _, found, _ = ingest(shelf, by="alice")
    assert found["a.md"]["outcome"] == "unchanged"
    _, found, _ = ingest(folder(a_md="beta"), by="alice")
    assert found["a.md"]["source_revision"] == revision(2, "beta")


def test_a_pure_writer_may_and_a_reader_may_not(ingest, folder, lychd):
    assert ingest(folder(a_md="alpha"), by="wanda")[0] == 0
    ran = lychd("ingest", folder(a_md="alpha"), "--as", "bob", "--namespace", GARDEN, "--json")
    assert (ran.code, ran.document["code"]) == (2, "authority_refused")


def test_names_in_other_scripts_and_long_ones_get_fitting_keys(ingest, folder):
    long, longer = "n" * 130 + "-one_md", "n" * 130 + "-two_md"
    shelf = folder(
        **{"日本語_md": "a", "ärger und so_md": "b", long: "c", longer: "d", "ordinary_md": "e", "рука_md": "f"}
    )
    code, found, _ = ingest(shelf)
    assert code == 0
    keys = {place: one["source_key"] for place, one in found.items()}
    assert keys["ordinary.md"] == "ordinary.md"
    assert keys["日本語.md"] == "md-" + hashlib.sha256("日本語.md".encode()).hexdigest()[:16]
    assert keys["ärger und so.md"].startswith("rger-und-so.md-")
    cut = [key for place, key in keys.items() if place.startswith("nnn")]
    assert len(set(cut)) == 2, "the cut parts are alike, the digests are not"
    assert {key[:101] for key in cut} == {"n" * 100 + "-"}
    assert len(set(keys.values())) == 6
    for key in keys.values():
        Intake(request_id="r", source_key=key, source_revision="1", text="t")


def test_a_name_that_is_no_text_comes_in_too(ingest, folder):
    shelf = folder(a_md="alpha")
    (shelf / os.fsdecode(b"\xff\xfe.md")).write_text("beta")
    code, found, document = ingest(shelf)
    assert (code, document["totals"]) == (0, {"created": 2})
    assert any(one["source_key"].endswith(hashlib.sha256(b"\xff\xfe.md").hexdigest()[:16]) for one in found.values())


def test_what_cannot_be_taken_in_is_reported_and_the_rest_goes_on(ingest, folder):
    shelf = folder(
        a_md="fine",
        blank_md=" \u200b\n",
        broken_md=b"caf\xe9",
        empty_md="",
        large_md="w" * (limits.NOTE_TEXT_MAX_BYTES + 1),
        long_md="w" * (limits.NOTE_TEXT_MAX_CHARS + 1),
        nul_md="a\x00b",
        z_md="fine too",
    )
    os.mkfifo(shelf / "pipe.md")
    (shelf / "dangling.md").symlink_to("nothing-here.md")
    (shelf / "itself.md").symlink_to("itself.md")
    code, found, document = ingest(shelf)
    assert code == 2
    assert {place: one.get("code") for place, one in found.items()} == {
        "a.md": None,
        "blank.md": "invalid_request",
        "broken.md": "invalid_request",
        "dangling.md": "unreadable",
        "empty.md": "invalid_request",
        "itself.md": "unreadable",
        "large.md": "text_too_large",
        "long.md": "text_too_large",
        "nul.md": "invalid_request",
        "pipe.md": "unreadable",
        "z.md": None,
    }
    assert document["totals"] == {"created": 2, "refused": 9}


def test_hidden_files_foreign_kinds_and_links_outside_are_skipped_and_reported(ingest, folder, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "private.md").write_text("private")
    shelf = folder(a_md="alpha")
    (shelf / ".hidden.md").write_text("hidden")
    (shelf / ".git").mkdir()
    (shelf / ".git" / "c.md").write_text("hidden")
    (shelf / "image.png").write_bytes(b"png")
    (shelf / "link.md").symlink_to(tmp_path / "outside" / "private.md")
    (shelf / "folder").symlink_to(tmp_path / "outside")
    (shelf / "inside.md").symlink_to("a.md")
    code, found, _ = ingest(shelf)
    assert code == 0
    assert {place: one.get("message") for place, one in found.items() if one["outcome"] == "skipped"} == {
        ".git": "hidden",
        ".hidden.md": "hidden",
        "folder": "a link to a folder",
        "image.png": "not Markdown or text",
        "link.md": "a link that leaves the folder",
    }
    assert set(Note.objects.values_list("source__source_key", flat=True)) == {"a.md", "inside.md"}


def test_one_file_is_named_by_its_name(ingest, folder):
    _, found, _ = ingest(folder(deep__c_md="gamma") / "deep" / "c.md")
    assert found["c.md"]["source_key"] == "c.md"


def test_a_dry_run_sends_nothing(ingest, folder):
    shelf = folder(a_md="alpha", b_md="beta", c_md="")
    code, found, document = ingest(shelf, "--dry-run", "--batch", "1")
    assert (code, outcomes(found)) == (2, {"a.md": "new", "b.md": "new", "c.md": "refused"})
    assert (document["dry_run"], Note.objects.count()) == (True, 0)


def test_people_get_a_line_an_item_and_totals(lychd, garden, folder):
    ran = lychd("ingest", folder(a_md="alpha", b_md=""), *AS_WANDA)
    assert ran.code == 2
    assert f"created    a.md  {revision(1, 'alpha')}" in ran.out
    assert "refused    b.md  invalid_request" in ran.out
    assert f"in {GARDEN} as wanda: 1 created, 1 refused" in ran.out
    assert "ingest: 2 of 2 notes" in ran.err


def test_an_empty_folder_is_fine(ingest, folder):
    assert ingest(folder())[2]["totals"] == {}


@pytest.mark.parametrize("path", ["/nowhere", "/dev/null"])
def test_a_path_that_is_none_is_wrong_usage(lychd, garden, path):
    assert lychd("ingest", path, *AS_WANDA).code == 64


def test_a_batch_has_its_bounds(lychd, garden, folder):
    for size in (0, limits.BATCH_INTAKE_MAX + 1):
        assert lychd("ingest", folder(a_md="alpha"), *AS_WANDA, "--batch", size).code == 64


# --- JSON lines ------------------------------------------------------------------------------------------------------


def lines(*objects) -> str:
    return "\n".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in objects) + "\n"


def test_json_lines_carry_every_field(ingest, tmp_path):
    file = tmp_path / "notes.jsonl"
    file.write_text(
        lines(
            {
                "source_key": "a/b",
                "text": "alpha",
                "source_revision": "r9",
                "asserted_origin": "wiki:a",
                "kind": "decision",
                "observed_at": "2031-05-01T12:00:00+02:00",
                "retention": {"class": "short", "retain_until": "2032-01-01T00:00:00Z"},
            },
            "",
            {"source_key": "a/c", "text": "beta", "asserted_origin": None},
        )
    )
    code, found, _ = ingest(file)
    assert (code, list(found)) == (0, ["notes.jsonl:1", "notes.jsonl:3"])
    note = Note.objects.get(source__source_key="a/b")
    assert (note.source_revision, note.asserted_origin, note.kind) == ("r9", "wiki:a", "decision")
    assert (note.retention_class, canonical.instant(note.retain_until)) == ("short", "2032-01-01T00:00:00.000000Z")
    assert canonical.instant(note.observed_at) == "2031-05-01T10:00:00.000000Z"
    assert found["notes.jsonl:3"]["source_revision"] == revision(1, "beta")


def test_a_repeat_of_named_revisions_replays(ingest, tmp_path):
    file = tmp_path / "notes.jsonl"
    file.write_text(lines({"source_key": "a", "text": "alpha", "source_revision": "r1"}))
    ingest(file)
    assert outcomes(ingest(file)[1]) == {"notes.jsonl:1": "replayed"}
    file.write_text(lines({"source_key": "a", "text": "other", "source_revision": "r1"}))
    code, found, _ = ingest(file)
    assert (code, found["notes.jsonl:1"]["code"]) == (2, "source_revision_conflict")


def test_several_revisions_of_a_source_may_come_in_one_file(ingest, tmp_path):
    file = tmp_path / "notes.jsonl"
    texts = ["alpha", "alpha", "beta", "alpha"]
    file.write_text(lines(*({"source_key": "a", "text": text} for text in texts)))
    code, found, _ = ingest(file)
    assert code == 0
    assert list(outcomes(found).values()) == ["created", "unchanged", "created", "created"]
    assert [one.get("source_revision") for one in found.values()] == [
        revision(1, "alpha"),
        None,
        revision(2, "beta"),
        revision(3, "alpha"),
    ]
    assert list(outcomes(ingest(file, "--dry-run", "--batch", "1")[1]).values())[:1] == ["unchanged"]


def test_a_twin_of_a_refused_line_shares_its_fate(ingest, tmp_path, wanda, alice):
    # Another's revoked revision, which a writer does not see before the archive refuses it.
    note = cast.admitted(alice, "alpha", source="a", revision=revision(1, "alpha"))
    cast.revoke(alice, cast.step(note, cast.State.REVOKED))
    file = tmp_path / "notes.jsonl"
    file.write_text(lines({"source_key": "a", "text": "alpha"}, {"source_key": "a", "text": "alpha"}))
    code, found, _ = ingest(file)
    assert code == 2
    assert {one["code"] for one in found.values()} == {"source_revision_revoked"}


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        "null",
        '{"source_key": "a"}',
        '{"text": "a"}',
        '{"source_key": "a", "text": 1}',
        '{"source_key": "a", "text": "b", "text": "c"}',
        '{"source_key": "a", "text": "b", "more": 1}',
        '{"source_key": "a b", "text": "b"}',
        '{"source_key": "a", "text": "\\ud800"}',
        '{"source_key": "a", "text": "b", "observed_at": "2031-05-01"}',
        '{"source_key": "a", "text": "b", "observed_at": "2031-13-01T00:00:00Z"}',
        '{"source_key": "a", "text": "b", "observed_at": "2031-05-01T00:00:00.1234567Z"}',
        '{"source_key": "a", "text": "b", "observed_at": "0001-01-01T00:00:00+05:00"}',
        '{"source_key": "a", "text": "b", "retention": "short"}',
        '{"source_key": "a", "text": "b", "retention": {"until": "x"}}',
        '{"source_key": "a", "text": "b", "asserted_origin": "free text"}',
    ],
)
def test_a_wrong_line_is_refused_alone(ingest, tmp_path, line):
    file = tmp_path / "notes.jsonl"
    file.write_text(lines(line, {"source_key": "fine", "text": "fine"}))
    code, found, document = ingest(file)
    assert (code, found["notes.jsonl:1"]["code"]) == (2, "invalid_request")
    assert document["totals"] == {"created": 1, "refused": 1}


def test_a_line_without_end_is_refused_and_the_next_is_read(ingest, tmp_path):
    file = tmp_path / "notes.jsonl"
    file.write_text(
        lines(json.dumps({"source_key": "a", "text": "w" * 3_000_000}), {"source_key": "b", "text": "fine"})
    )
    _, found, _ = ingest(file)
    assert outcomes(found) == {"notes.jsonl:1": "refused", "notes.jsonl:2": "created"}


def test_json_lines_may_come_on_stdin(ingest, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"source_key": "a", "text": "alpha"}\n')))
    assert outcomes(ingest("-")[1]) == {"line 1": "created"}


def test_a_refusal_in_the_middle_keeps_what_came_before(ingest, folder, scripted):
    shelf = folder(**{f"{letter}_md": letter for letter in "abcd"})
    # Standing (A0, A2) and intake (A0, A1, A2) of the first batch, then no more.
    scripted.script = [True] * 5 + [False]
    code, found, document = ingest(shelf, "--batch", "2")
    assert (code, document["stopped"]) == (2, "authority_refused")
    assert outcomes(found) == {"a.md": "created", "b.md": "created", "c.md": "refused", "d.md": "refused"}


def test_words_of_the_index_are_vacuumed_at_the_end(ingest, folder, owner):
    asked = "SELECT vacuum_count FROM pg_stat_all_tables WHERE relname = 'archive_posting'"
    owner.execute("SELECT pg_stat_force_next_flush()")
    (before,) = owner.execute(asked).fetchone()
    ingest(folder(a_md="alpha"))
    owner.execute("SELECT pg_stat_clear_snapshot()")
    (after,) = owner.execute(asked).fetchone()
    assert after == before + 1
