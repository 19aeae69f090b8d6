#!/usr/bin/env python
"""Django's own entry point, for those who look for it; `lychd` is the one in daily use."""

import os
import sys


def main() -> None:
    """Run one management command with the settings of this checkout."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
