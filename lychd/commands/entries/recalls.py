"""Recall by words, resolution and receipts."""

from typing import Final

from archive import limits
from lychd.commands.entry import ACTING, Entry, Needs, option

ENTRIES: Final = (
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
)
