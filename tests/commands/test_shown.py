"""Every command that a page, a document, a message or an example shows is one that the command line takes."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from lychd.commands import grammar
from lychd.commands.entry import Parser
from lychd.commands.telling import UsageError

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("archive", "semantic", "inspection", "lychd")
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", ".env.example")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Where a command begins: in a quotation, at the start of a line, or behind a colon; `.venv/bin/` may stand before it.
BEGINS = re.compile(r"(?:(?<=`)|(?<=^)|(?<=<code>)|(?<=: )|(?<=\$ )|(?<=bin/))lychd (?=[a-z])", re.MULTILINE)
ENDS = re.compile(r"`|</code>|\n\n|\s+#|   |$")
NAMED_ONLY = ("…", "...")


def shown(text: str) -> Iterator[str]:
    """The commands in a text, each without what follows it."""
    for begins in BEGINS.finditer(text):
        rest = text[begins.end() :]
        quoted = text[begins.start() - 1 : begins.start()] == "`" or "bin/" in text[begins.start() - 4 : begins.start()]
        if not quoted:
            rest = rest.partition("\n")[0]
        ends = ENDS.search(rest)
        yield " ".join(rest[: ends.start() if ends else None].split()).rstrip(".,;")


def of_python(path: Path) -> Iterator[str]:
    """Those in the strings of a module; what is filled in is a word."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= set(node.values)
            yield from shown("".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield from shown(node.value)


def of_template(path: Path) -> Iterator[str]:
    """Those of a page; a condition holds, and what is filled in is a word."""
    text = path.read_text(encoding="utf-8")
    for included in re.findall(r'with command=("(?:[^"]*)"(?:\|add:(?:[\w.]+|"[^"]*"))*)', text):
        parts = re.findall(r'"([^"]*)"|\|add:([\w.]+)', included)
        yield from shown("".join(words or "X" for words, _ in parts))
    yield from shown(re.sub(r"{{.*?}}", "X", re.sub(r"{%.*?%}", "", text)))


def everything() -> list[tuple[str, str]]:
    found = [(path, command) for path in DOCUMENTS for command in shown(path.read_text(encoding="utf-8"))]
    found += [
        (path, command)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for command in of_python(path)
    ]
    found += [(path, command) for path in sorted((ROOT / "templates").rglob("*.html")) for command in of_template(path)]
    return sorted({(str(path.relative_to(ROOT)), command) for path, command in found})


def refused(command: str) -> str | None:
    """Why the command line would not take it; None where it would."""
    words = shlex.split(command)
    entry = grammar.COMMANDS.get(" ".join(words[:2])) or grammar.COMMANDS.get(words[0])
    if entry is None:
        if words in ([group] for group in grammar.GROUPS) or words[0] == "help":
            return None
        if words[0] not in get_commands() or words[0] in grammar.GROUPS:
            return "there is no such command"
        framework = load_command_class(get_commands()[words[0]], words[0]).create_parser("lychd", words[0])
        options = {name for action in framework._actions for name in action.option_strings}
        unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - options
        return f"no option {unknown}" if unknown else None
    rest = words[len(entry.line.split()) :]
    if not rest:
        return None  # The name of a command, in a sentence.
    parser = Parser(allow_abbrev=False)
    entry.describe(parser)
    for action in parser._actions:
        # A word such as NOTE or N stands for something of its kind.
        action.type = None if any(word.isupper() for word in rest) else action.type
        if words[-1] in NAMED_ONLY:
            action.required = False
    if words[-1] in NAMED_ONLY:
        rest = [*rest[:-1], "X"] if rest[-2:-1] and rest[-2].startswith("--") else rest[:-1]
    try:
        parser.parse_args(rest)
    except UsageError as error:
        return str(error)
    return None


def test_enough_is_found_in_every_kind_of_place():
    places = [place for place, _ in everything()]
    for kind, least in (("docs/", 30), ("templates/", 12), ("README.md", 6), (".env.example", 1), ("archive/", 8)):
        assert len([place for place in places if place.startswith(kind)]) >= least, kind
    assert len([place for place in places if place.startswith("lychd/")]) >= 25


@pytest.mark.parametrize(("place", "command"), everything())
def test_a_command_that_is_shown_can_be_typed(place, command):
    assert refused(command) is None


@pytest.mark.parametrize(
    "command",
    [
        "namespace configure X --owner OWNER --policy-revision REVISION",
        "token issue",
        "token steal",
        "frobnicate",
        "namespace migrate --why …",
        "receipt verify",
        "migrate --nonsense",
        "promote NOTE",
    ],
)
def test_one_that_cannot_is_found(command):
    assert (refused(command) is None) == (command == "receipt verify")
