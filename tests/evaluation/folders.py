"""Reading sets of a few lines."""

import json
from pathlib import Path

CORPUS = [
    {"id": "die Rosen", "lang": "de", "group": "de", "title": "Rosen", "text": "Die Gärtnerin schneidet im März."},
    {"id": "de/2", "lang": "de", "group": "de", "text": "Eichen wachsen langsam und werden alt."},
    {"id": "oaks", "lang": "en", "group": "en", "text": "Oaks grow slowly and grow old."},
    {"id": "roses", "lang": "en", "group": "en", "text": "The gardener was pruning roses in March."},
    {"id": "blank", "lang": "en", "group": "en", "text": "\u200b"},
    {"id": "far too long", "lang": "en", "group": "en", "text": "roses " * 3_000},
]
QUERIES = [
    {"id": "q1", "group": "de", "text": "Wer hat die Rosen geschnitten?"},
    {"id": "q2", "group": "en", "text": "When are roses pruned?"},
    {"id": "q3", "group": "en", "text": "unheard of"},
    {"id": "unjudged", "group": "en", "text": "oaks"},
]
JUDGEMENTS = [("q1", "die Rosen", 1), ("q2", "roses", 1), ("q2", "far too long", 1), ("q3", "oaks", 1)]


def written(folder: Path, *, corpus=CORPUS, queries=QUERIES, judgements=JUDGEMENTS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in judgements)]
    (folder / "qrels.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
