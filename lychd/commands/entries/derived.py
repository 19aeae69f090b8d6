"""What is derived: generations, derivations, the worker, recall by meaning."""

from typing import Final

from archive import limits
from lychd.commands.entry import ACTING, NAMESPACE, Entry, Needs, note_id, option
from semantic.limits import EMBED_BATCH

ENTRIES: Final = (
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
        "generation rebuild",
        "write what is searched again from the vectors that are there; nothing is embedded",
        "derived.rebuild",
        (option("reference", metavar="REFERENCE", help="the generation"), NAMESPACE),
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
            option("note", type=note_id, nargs="*", metavar="NOTE", help="these notes"),
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
        embeds=True,
    ),
    Entry(
        "derivation show",
        "show where one derivation stands",
        "derived.show",
        (option("derivation", type=note_id, metavar="DERIVATION", help="its id"), *ACTING),
        rights=("inspect_derivation",),
    ),
    Entry("worker", "embed what is asked for over the queue, until Ctrl-C", "derived.worker", embeds=True),
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
        embeds=True,
    ),
    Entry(
        "semantic resolve",
        "turn a semantic receipt into text, all of it or nothing",
        "derived.resolve",
        (option("request_id", metavar="REQUEST_ID", help="the identity of the recall"), *ACTING),
        rights=("semantic_resolve",),
    ),
)
