"""Notes: taken in, listed, read and decided about."""

from typing import Final

from archive import limits
from archive.lifecycle import Reason, State
from lychd.commands.entry import ACTING, NOTE, PAGE, Entry, note_id, option

DECIDING: Final = (
    NOTE,
    option("--version", type=int, required=True, metavar="N", help="the lifecycle version that you saw"),
    option("--reason", choices=[reason.value for reason in Reason], help="why, from the closed list"),
    *ACTING,
)

INGEST_ABOUT: Final = """\
PATH is a folder of Markdown or text (.md, .markdown, .txt; read recursively in sorted order), one such file, a .jsonl
file, or - for JSON lines on stdin. A line is an object with source_key and text, and if need be source_revision,
asserted_origin, kind, observed_at and retention {class, retain_until}.

In a folder the source key is the relative path. A path that is no identifier gives the characters that fit, cut to 100,
and 16 hexadecimal digits of the path's sha256. Hidden files, other kinds of files, linked folders and links that leave
the folder are skipped and reported.

A text that its source's newest revision has already is unchanged and is not sent. Otherwise the revision is
<n>-<12 digits of the text digest>, n one above the highest so far. A text that was revoked is refused. Repeating an
interrupted run does what is left and nothing twice. What others took in is not looked at.

The role writer has both rights that this needs."""

ENTRIES: Final = (
    Entry(
        "ingest",
        "take a folder, a file or JSON lines in as candidates",
        "ingest.ingest",
        (
            option("path", metavar="PATH", help="a folder, a file, or - for JSON lines on stdin"),
            option("--dry-run", action="store_true", help="say what would happen and send nothing"),
            option(
                "--batch",
                type=int,
                default=250,
                metavar="N",
                help=f"notes sent at a time, 1 to {limits.BATCH_INTAKE_MAX} (default 250)",
            ),
            *ACTING,
        ),
        about=INGEST_ABOUT,
        rights=("intake", "list_own_intakes"),
    ),
    Entry(
        "notes",
        "list notes, oldest first",
        "notes.listed",
        (
            option("--state", choices=[state.value for state in State], help="only those in this state"),
            option("--source", metavar="SOURCE_KEY", help="only the revisions of this source"),
            option("--mine", action="store_true", help="what you took in yourself; list_own_intakes is enough for it"),
            *PAGE,
            *ACTING,
        ),
        rights=("inspect_metadata",),
    ),
    Entry(
        "note",
        "show one note's record, without its text",
        "notes.record",
        (NOTE, *ACTING),
        rights=("inspect_metadata",),
    ),
    Entry(
        "review",
        "read a note to judge it, beside the promoted one of its source",
        "notes.review",
        (NOTE, *ACTING),
        rights=("review",),
    ),
    Entry(
        "promote",
        "let a candidate be recalled",
        "notes.promote",
        DECIDING,
        rights=("promote",),
    ),
    Entry(
        "archive",
        "take a promoted note out of recall, keeping its text",
        "notes.archive",
        DECIDING,
        rights=("archive",),
    ),
    Entry(
        "revoke",
        "clear a note's text for good; a tombstone stays",
        "notes.revoke",
        DECIDING,
        rights=("revoke",),
    ),
    Entry(
        "events",
        "what happened to one note, or in the whole namespace",
        "notes.events",
        (option("note", type=note_id, nargs="?", metavar="NOTE", help="the note's id"), *PAGE, *ACTING),
        rights=("inspect_metadata",),
    ),
)
