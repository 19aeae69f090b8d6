"""The `lychd` command."""

import os
import sys

from django.core.management import ManagementUtility


def main() -> None:
    """Run one command with the settings of this installation."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")
    ManagementUtility(sys.argv).execute()
