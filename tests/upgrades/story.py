"""What happens in an archive before it is dumped: rows of every kind, by the operations of the commit that runs this.

Run by `make.sh` with the code of that commit first on the path; `tests.cast` and `tests.semantic.acts` are its own.
Nothing but what has had one form ever since 7f1092f is used. The receipts that it leaves say what was answered.
"""

import os
import sys
from array import array
from inspect import signature
from math import sqrt
from typing import Any

import django

KEPT = 384
QUESTIONS = ("execute", "handbook", "engine", "roses sun", "漢字", "nothing of the kind")
TEXTS = {
    "session": "Session.execute runs a statement of the handbook; Session.execute returns its rows.",
    "engine": "The engine lives in lib/engine.py beside docs/handbook.md, and example.org/handbook tells of it.",
    "roses": "Roses want morning sun and a dry wall.",
    "kanji": "漢字は中国から来た文字である。",
    "mail": "Write to gardener@example.org about the engine of the mower.",
}


def main() -> None:
    """Let it happen in the database of the settings."""
    django.setup()
    from django.contrib.auth import get_user_model

    from archive.lifecycle import Reason, State
    from archive.operations import flag, host, migration
    from archive.operations.transition import archive, promote, revoke
    from lychd import console
    from semantic.operations import generations
    from tests import cast
    from tests.semantic import acts

    with console.database():
        garden = cast.plant()
        library = cast.plant("library", text_configuration="english")
        for binding in (garden.binding, library.binding):
            host.map_principal("dora")
            host.grant("dora", binding, host.actions_of(["deriver"]), by="host:tests")
        user = get_user_model().objects.create_user("keeper", password=None)
        host.map_principal("keeper", user_id=user.pk)
        # A commit that has tokens for some namespaces wants to be told which.
        whole = {"namespaces": None} if "namespaces" in signature(host.issue_token).parameters else {}
        host.issue_token("wanda", by="host:tests", name="first", **whole)  # type: ignore[arg-type]
        host.withdraw("ivy", "library", host.actions_of(["inspector"])[:1])

        for place in (garden, library):
            alice, bob, dora, otto = (place.caller(name) for name in ("alice", "bob", "dora", "otto"))
            key = place.binding.namespace
            notes = {name: cast.promoted(alice, text, source=name) for name, text in TEXTS.items()}
            waiting = cast.admitted(alice, "Tulips wait to be judged.", source="tulips")
            flag.flag(bob, waiting.id, Reason.DUPLICATE)
            cast.promoted(alice, "An older word about compost.", source="compost")
            cast.promoted(alice, "A newer word about compost.", source="compost", revision="2")
            gone = cast.promoted(alice, "A note that is archived.", source="archived")
            bad = cast.promoted(alice, "A note that is revoked.", source="revoked")
            generations.register(otto)
            for note in (*notes.values(), gone, bad):
                acts.derived(dora, note)
            archive(alice, cast.step(gone, State.ARCHIVED))
            revoke(alice, cast.step(bad, State.REVOKED, Reason.UNSAFE))
            acts.prepared(dora, cast.promoted(alice, "Prepared and never embedded.", source="prepared"))
            for number, words in enumerate(QUESTIONS):
                cast.asked(bob, words, request_id=f"{key}-words-{number}")
                acts.asked(bob, words, request_id=f"{key}-meaning-{number}")
            _pad(place)
        promote(
            garden.caller("alice"),
            cast.step(cast.admitted(garden.caller("alice"), "A last word.", source="last"), State.PROMOTED),
        )

        moved = host.configure_namespace("shed", owner=cast.OWNER, policy_revision=cast.POLICY, by="host:tests")
        host.grant("alice", moved, host.actions_of(["curator", "writer", "recaller"]), by="host:tests")
        host.grant("otto", moved, host.actions_of(["operator"]), by="host:tests")
        shed = cast.Garden(moved)
        cast.promoted(shed.caller("alice"), "The shed keeps spades.", source="spades")
        newer = host.configure_namespace("shed", owner=cast.OWNER, policy_revision="policy-2", by="host:tests")
        host.grant("otto", newer, host.actions_of(["operator"]), by="host:tests")
        migration.migrate(cast.Garden(newer).caller("otto"), reason="a second policy", carry_grants=True)


def _pad(place: Any) -> None:
    """A second generation, of vectors that are padded with zeros; the configured one is the first again afterwards."""
    from django.conf import settings

    from semantic.operations import generations
    from semantic.presets import STAND_IN
    from tests.semantic import acts

    before = settings.LYCHD_ARCHIVE, settings.LYCHD_EMBEDDERS
    archive: Any = settings.LYCHD_ARCHIVE
    settings.LYCHD_EMBEDDERS = {**settings.LYCHD_EMBEDDERS, "padded": "story.Padded"}
    binding = {
        **STAND_IN,
        "provider": "padded",
        "padding": {"from": KEPT, "to": 1_024, "by": "zeros-after-normalize"},
    }
    derivation = {**archive["derivation"], "generation": "padded-1", "embed_binding": binding}
    settings.LYCHD_ARCHIVE = {**archive, "derivation": derivation}
    try:
        generations.register(place.caller("otto"))
        from archive.models import Note

        for note in Note.objects.filter(namespace__key=place.binding.namespace, source__source_key__in=TEXTS):
            acts.derived(place.caller("dora"), note.id)
        acts.asked(place.caller("bob"), "roses sun", request_id=f"{place.binding.namespace}-padded")
    finally:
        settings.LYCHD_ARCHIVE, settings.LYCHD_EMBEDDERS = before


class Padded:
    """The stand-in, of which the first places are kept, brought to length one, and padded."""

    def __init__(self, embed_binding: dict[str, Any]) -> None:
        from semantic.embedders.stand_in import StandIn

        self._whole = StandIn(embed_binding)

    def open(self, lease: Any) -> Any:
        """Open the stand-in and shorten what it answers."""
        from dataclasses import replace

        from semantic import vectors

        driver: Any = self._whole.open(lease)
        whole = driver.embed

        def embed(items: Any, kind: Any) -> Any:
            answers = []
            for one in whole(items, kind):
                kept = list(array("f", one.vector))[:KEPT]
                length = sqrt(sum(number * number for number in kept))
                short = [number / length for number in kept] + [0.0] * (1_024 - KEPT)
                answers.append(replace(one, vector=vectors.packed(array("f", short))))
            return answers

        driver.embed = embed
        return driver


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")
    sys.modules["story"] = sys.modules["__main__"]
    main()
