"""Reading sets: a folder with corpus.jsonl, queries.jsonl and qrels.tsv, checked line by line on the way in."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any


class SetError(ValueError):
    """A file of the set cannot be read as one; the message names file and line."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text of the set; a title is part of what can be found."""

    id: str
    text: str
    group: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Query:
    """One question of the set, asked inside its group alone."""

    id: str
    text: str
    group: str


@dataclass(frozen=True, slots=True)
class Group:
    """What is searched together: one conversation, one user, one language."""

    name: str
    language: str | None
    documents: Sequence[Document]
    queries: Sequence[Query]


@dataclass(frozen=True)
class ReadingSet:
    """Documents, questions, and which documents answer which question (degrees above zero)."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]
    judgements: Mapping[str, Mapping[str, int]]

    @cached_property
    def groups(self) -> Sequence[Group]:
        """The groups in the order of their first document, each with its judged questions."""
        documents: dict[str, list[Document]] = defaultdict(list)
        for document in self.documents:
            documents[document.group].append(document)
        queries: dict[str, list[Query]] = defaultdict(list)
        for query in self.queries:
            if query.id in self.judgements:
                queries[query.group].append(query)
        return [Group(name, found[0].language, found, queries[name]) for name, found in documents.items()]


def read(folder: Path) -> ReadingSet:
    """Read a set; raises `SetError` on the first line that is not one."""
    documents = [_document(one, at) for one, at in _lines(folder / "corpus.jsonl")]
    queries = [
        Query(_word(one, "id", at), _word(one, "text", at), str(one.get("group", "")))
        for one, at in _lines(folder / "queries.jsonl")
    ]
    for kind, ids in (("corpus.jsonl", [one.id for one in documents]), ("queries.jsonl", [one.id for one in queries])):
        if len(set(ids)) != len(ids):
            raise SetError(f"{folder / kind}: an id is there twice")
    judgements = _judgements(folder / "qrels.tsv", {query.id for query in queries})
    if not documents or not judgements:
        raise SetError(f"{folder}: no document, or no question with a judgement")
    return ReadingSet(folder.resolve().name, documents, queries, judgements)


def _document(one: Mapping[str, Any], at: str) -> Document:
    text = _word(one, "text", at)
    title = one.get("title")
    language = one.get("lang")
    return Document(
        id=_word(one, "id", at),
        text=f"{title} {text}" if title else text,
        group=str(one.get("group", "")),
        language=None if language is None else str(language),
    )


def _judgements(file: Path, known: set[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for number, line in enumerate(_text(file).splitlines()[1:], start=2):
        fields = line.split("\t")
        if len(fields) != 3 or not fields[2].lstrip("-").isdigit():
            raise SetError(f"{file}:{number}: not query, document and a whole number between tabs")
        query, document, degree = fields
        if query not in known:
            raise SetError(f"{file}:{number}: judges a question that queries.jsonl does not have")
        if int(degree) > 0:
            found.setdefault(query, {})[document] = int(degree)
    return found


def _lines(file: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    # Split at line feeds alone: a text may hold other separators of lines.
    for number, line in enumerate(_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        at = f"{file}:{number}"
        try:
            one = json.loads(line)
        except ValueError:
            raise SetError(f"{at}: not JSON") from None
        if not isinstance(one, dict):
            raise SetError(f"{at}: not an object")
        yield one, at


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise SetError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SetError(f"{file}: not UTF-8") from None


def _word(one: Mapping[str, Any], key: str, at: str) -> str:
    value = one.get(key)
    if not isinstance(value, str) or not value:
        raise SetError(f"{at}: no {key}")
    return value
