"""Every command of the archive on one page: its words, options and help. Nothing here imports Django.

An act is named `module.function` beneath `lychd.commands`; it is imported when its command runs.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from importlib import import_module
from typing import Any, Final, NoReturn
from uuid import UUID

from archive import limits
from archive.lifecycle import Reason, State
from lychd.commands.telling import Told, UsageError
from semantic.limits import EMBED_BATCH


class Needs(Enum):
    """What has to be there before a command can act."""

    NOTHING = "nothing"
    SETTINGS = "settings"
    DATABASE = "database"


class Parser(argparse.ArgumentParser):
    """Raises instead of leaving, so that every usage error ends in one place with one exit code."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\nSee `{self.prog} --help`.")


Option = Callable[[argparse.ArgumentParser], object]


def option(*names: str, **how: Any) -> Option:
    return lambda parser: parser.add_argument(*names, **how)


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: its words, one line of help, what it takes, and the act behind it."""

    line: str
    summary: str
    act: str
    options: tuple[Option, ...] = ()
    needs: Needs = Needs.DATABASE
    about: str = field(default="", kw_only=True)
    # The actions that the principal of `--as` needs, by their names in grants.
    rights: tuple[str, ...] = field(default=(), kw_only=True)

    def perform(self, options: argparse.Namespace) -> Told | None:
        """Run the act; one that speaks while it runs has nothing left to tell at its end."""
        module, _, function = self.act.partition(".")
        told: Told | None = getattr(import_module(f"lychd.commands.{module}"), function)(options)
        return told

    def describe(self, parser: argparse.ArgumentParser) -> None:
        """Teach a parser the options of this command."""
        for add in self.options:
            add(parser)
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document on stdout")
        parser.set_defaults(entry=self)


def _moment(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is no time such as 2031-05-01T12:00:00+02:00") from None
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{value!r} has no offset; write 2031-05-01T12:00:00+02:00")
    return moment.astimezone(UTC)


def _note(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is no note id; `lychd notes` lists them") from None


def _sizes(value: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(one) for one in value.split(",")}))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 1:
        raise argparse.ArgumentTypeError(f"{value!r} is no list of sizes such as 1000,10000")
    return sizes


AS: Final = option("--as", dest="subject", metavar="SUBJECT", help="the principal who acts (or LYCHD_AS)")
NAMESPACE: Final = option(
    "--namespace", metavar="KEY", help="where (or LYCHD_NAMESPACE; the only one served needs no naming)"
)
ACTING: Final = (AS, NAMESPACE)
PAGE: Final = (
    option("--limit", type=int, default=limits.PAGE_SIZE_DEFAULT, metavar="N", help="at most so many (default 50)"),
    option("--cursor", metavar="CURSOR", help="go on where the last page ended"),
)
NOTE: Final = option("note", type=_note, metavar="NOTE", help="the note's id")
DECIDING: Final = (
    NOTE,
    option("--version", type=int, required=True, metavar="N", help="the lifecycle version that you saw"),
    option("--reason", choices=[reason.value for reason in Reason], help="why, from the closed list"),
    *ACTING,
)

GROUPS: Final = {
    "receipt": "receipts: show one, or verify an exported one anywhere",
    "principal": "who acts: subjects and the users behind them",
    "grant": "what a principal may do in a namespace",
    "token": "bearer tokens of agents",
    "namespace": "which namespaces are served, and under which binding",
    "lexical": "the index of words",
    "generation": "embedding generations: discover, register, retire, see their coverage",
    "derivation": "one note in one generation",
    "semantic": "recall by meaning",
}

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

EVALUATE_ABOUT: Final = """\
corpus.jsonl: one object a line with id and text, and where there is one title, group, lang. queries.jsonl: id, text,
group. qrels.tsv: a header, then query, document and degree between tabs.

Everything is taken in, promoted and recalled by the operations, in a database that is made for it and dropped at the
end, one namespace a group. bm25s answers the same questions beside it. Where the folder's parent has a baselines.json
with figures for it, a library that is more than 0.005 off fails the run (exit 1). Needs the extra `evaluate`.

With --policy semantic every promoted note is embedded by the small model (extra `models`), and asked for by meaning.
The model's own brute force stands beside it, over the same notes: figures that differ in three digits fail the run. A
document that is longer than the model reads is not embedded, is counted, and stays in the judgements."""

BENCH_ABOUT: Final = """\
Works in a database that is made for it and dropped at the end. Own acts and baselines are taken in turns, warm, on the
same rows. A whole run takes some minutes; 200000 notes are worth asking for with --sizes, and take longer.

With --policy semantic: `recall` asks exactly, by meaning, beside plain pgvector and a flat scan in numpy, over rows of
which a fifth is withdrawn; `derivation` embeds beside the bare model, and needs the extra `models`. Every time that was
taken is in the JSON document."""

ENTRIES: Final[tuple[Entry, ...]] = (
    # The first hour.
    Entry(
        "demo",
        "a whole archive on this machine, with a handbook in it",
        "host.demo",
        (
            option("--remove", action="store_true", help="stop the demo and delete everything it made"),
            option("--no-serve", action="store_true", help="load and prove, then end"),
            option("--port", type=int, metavar="N", help="serve on this port (default 8000, or the next free one)"),
        ),
        Needs.SETTINGS,
    ),
    Entry(
        "init",
        "migrate, switch the archive on, and make the first namespace, curator and token; safe to repeat",
        "host.init",
        (
            option("--namespace", metavar="KEY", default="notes", help="the first namespace (default notes)"),
            option("--owner", metavar="OWNER", default="owner", help="who owns it (default owner)"),
            option("--policy", metavar="REVISION", default="policy-1", help="its policy revision (default policy-1)"),
            option("--curator", metavar="NAME", default="curator", help="user and subject of the first curator"),
            option("--agent", metavar="SUBJECT", default="agent", help="subject of the first agent"),
            option("--ask-password", action="store_true", help="ask for the curator's password instead of making one"),
        ),
    ),
    Entry(
        "serve",
        "serve pages and API until Ctrl-C",
        "host.serve",
        (
            option("--host", default="127.0.0.1", help="the address to listen on (default 127.0.0.1)"),
            option("--port", type=int, metavar="N", help="the port (default 8000, or the next free one; 0: any)"),
            option("--workers", type=int, default=1, metavar="N", help="processes that answer (default 1)"),
        ),
    ),
    Entry(
        "migrate",
        "bring the tables up to date, as their owner",
        "host.migrate",
        (
            option("app", nargs="?", help="one application only"),
            option("migration", nargs="?", help="and up or down to this migration"),
            option("--database", default="owner", help="the connection to migrate on (default owner)"),
            option("--no-input", action="store_true", help="ask nothing (it never does)"),
        ),
    ),
    Entry(
        "doctor",
        "check the whole installation, changing nothing; exit 4 if anything is wrong",
        "host.doctor",
        (option("--deep", action="store_true", help="every posting and every receipt instead of a sample"),),
    ),
    Entry("metrics", "the figures of the archive in Prometheus' text format", "host.metrics"),
    # Notes.
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
        (option("note", type=_note, nargs="?", metavar="NOTE", help="the note's id"), *PAGE, *ACTING),
        rights=("inspect_metadata",),
    ),
    # Recall.
    Entry(
        "recall",
        "ask promoted notes in words; leaves a receipt. A miss is an answer too",
        "recalls.recall",
        (
            option("query", nargs="+", metavar="QUERY", help="the words; - reads them from stdin"),
            option("--request-id", metavar="ID", help="an identity of your own; the same again gives the same receipt"),
            option("--top-k", type=int, default=limits.TOP_K_DEFAULT, metavar="N", help="at most so many (default 5)"),
            option(
                "--char-budget", type=int, default=limits.CHAR_BUDGET_DEFAULT, metavar="N", help="characters in all"
            ),
            option(
                "--min-rank", type=float, default=limits.MIN_RANK_DEFAULT, metavar="SCORE", help="leave out below it"
            ),
            option(
                "--text", action="store_true", help="resolve at once and print the texts; needs the right resolve too"
            ),
            *ACTING,
        ),
        rights=("recall",),
    ),
    Entry(
        "resolve",
        "turn a receipt into text, all of it or nothing",
        "recalls.resolve",
        (option("request_id", metavar="REQUEST_ID", help="the identity of the recall"), *ACTING),
        rights=("resolve",),
    ),
    Entry(
        "receipt show",
        "show a retained receipt; says nothing of today's eligibility",
        "recalls.receipt",
        (option("request_id", metavar="REQUEST_ID", help="the identity of the recall"), *ACTING),
        rights=("inspect_receipt",),
    ),
    Entry(
        "receipt verify",
        "recompute an exported receipt's digest; needs no database",
        "verify.verify",
        (option("file", metavar="FILE", help="a JSON file with the receipt or the recall's answer, or - for stdin"),),
        Needs.NOTHING,
    ),
    # Derived: generations, vectors, recall by meaning.
    Entry(
        "generation discover",
        "say which generation is configured, and its manifest's digest",
        "derived.discover",
        ACTING,
        rights=("discover_generation",),
    ),
    Entry(
        "generation register",
        "register the configured generation; safe to repeat",
        "derived.register",
        ACTING,
        rights=("register_generation",),
    ),
    Entry(
        "generation retire",
        "retire a generation for good, and its vectors with it",
        "derived.retire",
        (option("reference", metavar="REFERENCE", help="the generation"), *ACTING),
        rights=("retire_generation",),
    ),
    Entry(
        "generation status",
        "show generations and how much of the namespace each has embedded",
        "derived.status",
        (option("reference", nargs="?", metavar="REFERENCE", help="one generation only"), *ACTING),
        rights=("inspect_derivation",),
    ),
    Entry(
        "generation describe",
        "describe a model's folder for LYCHD_DERIVATION_EMBEDDER; needs the extra `models`",
        "derived.describe",
        (
            option("folder", metavar="FOLDER", help="a sentence-transformers model with model.safetensors"),
            option("--model", metavar="NAME", help="its name (default: the folder's)"),
            option("--revision", metavar="REVISION", default="local", help="its revision (default local)"),
            option("--document-prefix", default="", metavar="TEXT", help="what stands before a note"),
            option("--query-prefix", default="", metavar="TEXT", help="what stands before a query"),
        ),
        Needs.SETTINGS,
    ),
    Entry(
        "derive",
        "embed promoted notes here and now; what is complete is not embedded again",
        "derived.derive",
        (
            option("note", type=_note, nargs="*", metavar="NOTE", help="these notes"),
            option("--all", action="store_true", help="every promoted note without a complete derivation"),
            option("--limit", type=int, metavar="N", help="with --all: at most so many"),
            option("--retry", action="store_true", help="take failed and expired attempts up again"),
            option("--queue", action="store_true", help="ask the worker instead of embedding here"),
            option(
                "--batch",
                type=int,
                choices=range(1, EMBED_BATCH + 1),
                default=EMBED_BATCH,
                metavar="N",
                help=f"notes that are embedded together, 1 to {EMBED_BATCH} (default {EMBED_BATCH})",
            ),
            *ACTING,
        ),
        rights=("discover_generation", "inspect_derivation", "prepare_derivation", "execute_derivation"),
    ),
    Entry(
        "derivation show",
        "show where one derivation stands",
        "derived.show",
        (option("derivation", type=_note, metavar="DERIVATION", help="its id"), *ACTING),
        rights=("inspect_derivation",),
    ),
    Entry("worker", "embed what is asked for over the queue, until Ctrl-C", "derived.worker"),
    Entry(
        "semantic recall",
        "ask by meaning; leaves a receipt that says how much was searched",
        "derived.recall",
        (
            option("query", nargs="+", metavar="QUERY", help="the question; - reads it from stdin"),
            option(
                "--min-cosine", type=float, required=True, metavar="COSINE", help="how near is near enough, -1 to 1"
            ),
            option("--request-id", metavar="ID", help="an identity of your own; the same again gives the same receipt"),
            option("--top-k", type=int, default=limits.TOP_K_DEFAULT, metavar="N", help="at most so many (default 5)"),
            option(
                "--char-budget", type=int, default=limits.CHAR_BUDGET_DEFAULT, metavar="N", help="characters in all"
            ),
            option("--text", action="store_true", help="resolve at once; needs the right semantic_resolve too"),
            *ACTING,
        ),
        rights=("semantic_recall",),
    ),
    Entry(
        "semantic resolve",
        "turn a semantic receipt into text, all of it or nothing",
        "derived.resolve",
        (option("request_id", metavar="REQUEST_ID", help="the identity of the recall"), *ACTING),
        rights=("semantic_resolve",),
    ),
    # The host: who acts, what is served.
    Entry(
        "principal add",
        "make a principal, or link one to a user",
        "authority.add_principal",
        (
            option("subject", metavar="SUBJECT", help="the stable name; it is never given to another"),
            option("--user", metavar="USERNAME", help="the user who signs in as this principal"),
        ),
    ),
    Entry("principal list", "list principals", "authority.list_principals"),
    Entry(
        "principal disable",
        "refuse a principal everything",
        "authority.disable_principal",
        (option("subject", metavar="SUBJECT", help="the principal"),),
    ),
    Entry(
        "principal enable",
        "let a disabled principal act again",
        "authority.enable_principal",
        (option("subject", metavar="SUBJECT", help="the principal"),),
    ),
    Entry(
        "grant give",
        "allow roles or single actions",
        "authority.give_grant",
        (
            option("subject", metavar="SUBJECT", help="the principal"),
            option("actions", nargs="+", metavar="ROLE|ACTION", help="writer, recaller, curator, inspector, operator"),
            option("--until", type=_moment, metavar="TIME", help="until then, such as 2031-05-01T12:00:00+02:00"),
            NAMESPACE,
        ),
    ),
    Entry(
        "grant list",
        "list grants that hold now",
        "authority.list_grants",
        (
            option("--subject", metavar="SUBJECT", help="only of this principal"),
            option("--namespace", metavar="KEY", help="only in this namespace"),
        ),
    ),
    Entry(
        "grant withdraw",
        "end roles or single actions now",
        "authority.withdraw_grant",
        (
            option("subject", metavar="SUBJECT", help="the principal"),
            option("actions", nargs="+", metavar="ROLE|ACTION", help="what is withdrawn"),
            NAMESPACE,
        ),
    ),
    Entry(
        "token create",
        "make a token; its secret is shown once",
        "authority.create_token",
        (
            option("subject", metavar="SUBJECT", help="the principal it stands for"),
            option("--name", default="", help="what it is for, to tell it from others"),
            option(
                "--days",
                type=int,
                default=limits.TOKEN_LIFETIME_DAYS_DEFAULT,
                metavar="N",
                help=f"how long it lasts (default 90, at most {limits.TOKEN_LIFETIME_DAYS_MAX})",
            ),
        ),
    ),
    Entry(
        "token list",
        "list tokens, never their secrets",
        "authority.list_tokens",
        (option("--subject", metavar="SUBJECT", help="only of this principal"),),
    ),
    Entry(
        "token rotate",
        "make a successor; the old one goes on a little",
        "authority.rotate_token",
        (
            option("prefix", metavar="PREFIX", help="the beginning of the token, as the list shows it"),
            option(
                "--overlap",
                type=int,
                default=limits.TOKEN_ROTATION_OVERLAP_SECONDS_DEFAULT,
                metavar="SECONDS",
                help="how long the old one goes on (default 3600)",
            ),
        ),
    ),
    Entry(
        "token revoke",
        "end a token now",
        "authority.revoke_token",
        (option("prefix", metavar="PREFIX", help="the beginning of the token, as the list shows it"),),
    ),
    Entry(
        "namespace configure",
        "serve a namespace, or change how",
        "namespaces.configure",
        (
            option("key", metavar="KEY", help="the namespace"),
            option("--owner", required=True, help="who owns what is in it"),
            option(
                "--policy", required=True, metavar="REVISION", help="the policy revision that grants are given under"
            ),
            option(
                "--text-configuration",
                metavar="NAME",
                help="how words are cut: simple, english, german … (default: as it is, simple at first)",
            ),
            option(
                "--second-person",
                action=argparse.BooleanOptionalAction,
                help="whoever takes a note in cannot promote it (default: as it is, no at first)",
            ),
        ),
    ),
    Entry("namespace list", "list configured namespaces", "namespaces.listed"),
    Entry(
        "namespace migrate",
        "bring retained notes under the binding that is configured now",
        "namespaces.migrate",
        (
            option("--reason", required=True, help="why, for the record"),
            option(
                "--carry-grants", action="store_true", help="give today's grants again under the new policy revision"
            ),
            *ACTING,
        ),
        rights=("migrate_binding",),
    ),
    Entry(
        "namespace disable",
        "stop serving a namespace; everything in it stays",
        "namespaces.disable",
        (option("key", metavar="KEY", help="the namespace"),),
    ),
    # Measuring, in databases of their own.
    Entry(
        "evaluate",
        "how well the archive finds: a folder of documents, questions and judgements",
        "measuring.evaluate",
        (
            option("path", metavar="PATH", help="a folder with corpus.jsonl, queries.jsonl and qrels.tsv"),
            option(
                "--policy", choices=["lexical", "semantic"], default="lexical", help="how to recall (default lexical)"
            ),
            option(
                "--text-configuration",
                default="simple",
                metavar="NAME",
                help="simple (default), english ..., or auto: that of each group's language",
            ),
        ),
        about=EVALUATE_ABOUT,
    ),
    Entry(
        "bench",
        "how fast the archive is, each thing beside bare SQL that does the same",
        "measuring.bench",
        (
            option(
                "name",
                nargs="?",
                default="all",
                choices=[
                    "all",
                    "recall",
                    "intake",
                    "batch",
                    "promotion",
                    "revocation",
                    "sharing",
                    "load",
                    "derivation",
                ],
                help="what to measure (default all)",
            ),
            option(
                "--policy", choices=["lexical", "semantic"], default="lexical", help="by words (default) or by meaning"
            ),
            option(
                "--sizes",
                type=_sizes,
                metavar="N,N",
                help="notes to measure at (default 1000,10000,50000; by meaning 100000 as well)",
            ),
            option("--texts", metavar="PATH", help="a reading set to cut texts and questions from"),
            option("--effort", choices=["small", "whole"], default="whole", help="small proves that all of it works"),
        ),
        about=BENCH_ABOUT,
    ),
    Entry(
        "lexical rebuild", "cut the promoted notes of a namespace into words again", "namespaces.rebuild", (NAMESPACE,)
    ),
)

COMMANDS: Final = {entry.line: entry for entry in ENTRIES}

# What the framework and other doors add; `lychd` hands these over as they are.
BORROWED: Final = {
    "openapi": "write the API's description",
    "check": "the framework's checks (add --database default for the fences of the database)",
    "collectstatic": "gather the files that a web server may serve",
    "shell": "a Python shell with the models loaded",
}

_EPILOGUE: Final = """\
exit codes: 0 done (a miss is an answer), 2 refused, 3 conflict, 4 unavailable, 64 wrong usage, 1 a fault, 130 Ctrl-C.
`lychd COMMAND --help` tells the rest. Every command takes --json. Settings: see .env.example."""


def first_words() -> tuple[str, ...]:
    """The words that a command line of ours can begin with."""
    return tuple(dict.fromkeys(entry.line.split()[0] for entry in ENTRIES))


def summary_of(word: str) -> str:
    """One line about a first word."""
    return COMMANDS[word].summary if word in COMMANDS else GROUPS[word]


def overview() -> str:
    """The page that `lychd help` prints."""
    lines = [
        "usage: lychd COMMAND …",
        "",
        "An archive of notes that remembers who said what, who may recall it, and why.",
        "",
    ]
    rows = [(entry.line, entry.summary) for entry in ENTRIES]
    wide = max(len(line) for line, _ in rows)
    lines += [f"  {line:<{wide}}  {summary}" for line, summary in rows]
    lines += ["", "from the framework:"]
    lines += [f"  {line:<{wide}}  {summary}" for line, summary in BORROWED.items()]
    return "\n".join([*lines, "", _EPILOGUE])


def parser() -> Parser:
    """Build the parser of the whole command line."""
    whole = Parser(prog="lychd", allow_abbrev=False)
    words = whole.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for word in first_words():
        attach(words, word)
    return whole


def attach(words: "argparse._SubParsersAction[Parser]", word: str) -> None:
    """Add one first word with everything beneath it."""
    entry = COMMANDS.get(word)
    if entry is not None:
        entry.describe(_leaf(words, word, entry))
        return
    group = words.add_parser(word, help=GROUPS[word], description=GROUPS[word], allow_abbrev=False)
    fill_group(group, word)


def fill_group(group: argparse.ArgumentParser, word: str) -> None:
    """Add the second words of a group."""
    seconds = group.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for entry in ENTRIES:
        if entry.line.startswith(f"{word} "):
            entry.describe(_leaf(seconds, entry.line.split()[1], entry))


def _leaf(words: "argparse._SubParsersAction[Parser]", word: str, entry: Entry) -> Parser:
    return words.add_parser(
        word,
        help=entry.summary,
        description=entry.summary[0].upper() + entry.summary[1:] + ".",
        epilog="\n\n".join(filter(None, (entry.about, _rights(entry)))) or None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _rights(entry: Entry) -> str:
    return f"Rights: {' and '.join(entry.rights)}." if entry.rights else ""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read a command line; raises `UsageError`."""
    return parser().parse_args(arguments)
