"""The demonstration on the command line."""

import argparse

from lychd import demo as demonstration
from lychd.commands.telling import Told


def demo(options: argparse.Namespace) -> Told | None:
    """Show the whole archive with a handbook in it."""
    if options.remove:
        return demonstration.remove()
    demonstration.show(options)
    return None
