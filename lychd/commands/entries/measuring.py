"""Measuring, in databases of their own."""

import argparse
from typing import Final

from lychd.commands.entry import Entry, option


def _sizes(value: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(one) for one in value.split(",")}))
    except ValueError:
        sizes = ()
    if not sizes or sizes[0] < 1:
        raise argparse.ArgumentTypeError(f"{value!r} is no list of sizes such as 1000,10000")
    return sizes


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

ENTRIES: Final = (
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
                    "http",
                    "review",
                    "lists",
                    "plans",
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
            option(
                "--baseline",
                action="store_true",
                help="lists: beside the same lists without the indexes of their growth, not beside little ones",
            ),
            option("--effort", choices=["small", "whole"], default="whole", help="small proves that all of it works"),
        ),
        about=BENCH_ABOUT,
    ),
)
