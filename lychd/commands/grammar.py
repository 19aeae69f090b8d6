"""The grammar of the command line: every entry on one page, and the parser that reads a line by it.

Nothing here imports Django. An act is named `module.function` beneath `lychd.commands`; it is imported when its command
runs.
"""

import argparse
from collections.abc import Sequence
from typing import Final

from lychd.commands.entries import ENTRIES
from lychd.commands.entry import Entry, Parser

GROUPS: Final = {
    "receipt": "receipts: show one, or verify an exported one anywhere",
    "principal": "who acts: subjects and the users behind them",
    "grant": "what a principal may do in a namespace",
    "token": "bearer tokens of agents",
    "namespace": "which namespaces are served, and under which binding",
    "lexical": "the index of words",
    "generation": "embedding generations: discover, register, rebuild, retire, see their coverage",
    "derivation": "one note in one generation",
    "semantic": "recall by meaning",
}

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
