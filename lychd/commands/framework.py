"""The same commands for `manage.py` and `call_command`: a thin coat over the one grammar and the one set of acts."""

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from archive.refusals import Refusal
from lychd import console
from lychd.commands import grammar
from lychd.commands.telling import Unready, UsageError, problem_lines


class Coat(BaseCommand):
    """One first word of the grammar as a command of the framework."""

    word: str
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Let our own options win over the framework's of the same name, such as --version."""
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Teach the framework's parser what ours knows."""
        entry = grammar.COMMANDS.get(self.word)
        if entry is not None:
            entry.describe(parser)
        else:
            grammar.fill_group(parser, self.word)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run a command line exactly as `lychd` would, exit codes included."""
        sys.exit(console.run([self.word, *argv[2:]], quiet=True))

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Answer `call_command`: the text or the document comes back, a refusal is a `CommandError`."""
        parsed = argparse.Namespace(**options)
        try:
            told = console.perform(parsed)
        except Refusal as refusal:
            raise CommandError(problem_lines(refusal), returncode=refusal.exit_code) from None
        except (UsageError, Unready) as error:
            raise CommandError(str(error)) from None
        return None if told is None else told.said(as_json=parsed.as_json)


def coat(of: str) -> type[Coat]:
    """Make the framework's command for a first word."""
    return type("Command", (Coat,), {"word": of, "help": grammar.summary_of(of), "__module__": __name__})
