"""Write the description of the API; a warning of the generator is a failure."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from archive.api import description


def written() -> str:
    """The description as it stands in docs/openapi.json."""
    return json.dumps(description.document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


class Command(BaseCommand):
    """Write the OpenAPI document to standard output, or to a file."""

    help = "Write the description of the API (OpenAPI) after validating it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the file."""
        parser.add_argument("--out", type=Path, help="the file to write; standard output without it")

    def handle(self, *, out: Path | None, **options: Any) -> None:
        """Build, validate, write."""
        try:
            text = written()
        except description.Warned as warned:
            raise CommandError(f"The description has gaps:\n{warned}") from None
        if out is None:
            self.stdout.write(text, ending="")
        else:
            out.write_text(text, encoding="utf-8")
