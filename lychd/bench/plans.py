"""Whether plans that a session keeps are good for everybody it serves: few notes and very many, in turns.

Three connections rank the same questions one after the other: one that serves both namespaces in turns, one that serves
this namespace alone, and one that is opened for the question and plans every statement anew.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connection, connections

from archive import limits
from archive.operations.recall import recall
from archive.requests import LexicalRecall
from lychd.bench.copies import multiply
from lychd.bench.figures import Figure, spread
from lychd.bench.ground import Ground, Progress, fresh, settle
from lychd.bench.recalls import TOP_K, watched
from lychd.bench.texts import Texts

FEW: Final = 50
OWN: Final = 4_000
"""So many are taken in through the operations; what more there is to be is copied from them."""
# After five plans made for their values the server may settle on one for all values.
_WARM: Final = 8
_FRESH: Final = "baseline: a connection opened for the question, which plans anew"
_ALONE: Final = "baseline: a connection that serves this namespace alone"


def measure(texts: Texts, many: int, questions: int, progress: Progress) -> list[Figure]:
    """Rank every question in both namespaces by each of the three connections, in another order each time."""
    grounds = {"few": _filled("few", FEW, texts, progress), "many": _filled("many", many, texts, progress)}
    settle()
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    kept = connections[DEFAULT_DB_ALIAS]
    alone = {name: kept.copy() for name in grounds}
    asked = grounds["many"].asked(_WARM + questions)
    for place, query in enumerate(asked):
        for name, ground in grounds.items():
            ways: list[tuple[str, Any]] = [("kept", kept), ("alone", alone[name]), ("fresh", kept.copy())]
            for way, used in ways[place % 3 :] + ways[: place % 3]:
                with _through(used):
                    if way == "fresh":
                        # The catalogue is read once a session; a plan is what is asked about.
                        _rank_ms(ground, asked[place - 1])
                    milliseconds = _rank_ms(ground, query)
                    if way == "fresh":
                        used.close()
                if place >= _WARM:
                    took[name, way].append(milliseconds)
        progress("questions in both namespaces", place + 1, len(asked))
    for used in alone.values():
        used.close()
    found: list[Figure] = []
    for name in grounds:
        found += spread(f"plans.{name}.rank", took[name, "kept"], took[name, "fresh"], _FRESH)
        found += spread(f"plans.{name}.rank.alone", took[name, "kept"], took[name, "alone"], _ALONE)
    return found


def _filled(key: str, notes: int, texts: Texts, progress: Progress) -> Ground:
    ground = Ground(str(connection.settings_dict["NAME"]), texts, progress, key)
    own = min(notes, OWN)
    ground.grow(own)
    if notes > own:
        progress(f"{notes} notes, the others copied", 0, 1)
        multiply(ground.namespace.id, notes // own - 1)
    return ground


def _rank_ms(ground: Ground, query: str) -> float:
    wanted = LexicalRecall(fresh("q"), query, top_k=TOP_K, char_budget=limits.CHAR_BUDGET_MAX)
    with watched() as clock:
        recall(ground.caller, wanted)
    return clock.rank_ms


@contextlib.contextmanager
def _through(used: Any) -> Iterator[None]:
    """Let this thread's operations go through a connection."""
    before = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = used
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = before
