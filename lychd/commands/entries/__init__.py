"""Every command: its words, its options, its help. One module here stands for one of acts beside this folder.

Nothing here imports Django, so a command line is read before anything is set up.
"""

from typing import Final

from lychd.commands.entries import authority, derived, host, measuring, namespaces, notes, recalls
from lychd.commands.entry import Entry

ENTRIES: Final[tuple[Entry, ...]] = (
    *host.ENTRIES,
    *notes.ENTRIES,
    *recalls.ENTRIES,
    *derived.ENTRIES,
    *authority.ENTRIES,
    *namespaces.ENTRIES,
    *measuring.ENTRIES,
)
