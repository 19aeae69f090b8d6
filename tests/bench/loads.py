"""What has to come out of the load rows exactly, at any size; how long it took is told and never judged."""

from collections.abc import Mapping
from typing import Any

from lychd.bench.load import Scale


def require_exact(figures: Mapping[str, Mapping[str, Any]], scale: Scale) -> None:
    """Fail unless what has to be one is one, and nothing ended but as it may."""
    load = {name.removeprefix("load."): one["value"] for name, one in figures.items() if name.startswith("load.")}
    errors = {name: value for name, value in load.items() if name.endswith("errors")}
    assert len(errors) == 7
    assert set(errors.values()) == {0}, errors
    # A machine without room may refuse a writer that waited too long; then it is told so, and nothing of it happened.
    refused = {name.split(".")[0]: value for name, value in load.items() if name.endswith("unavailable")}
    assert load["distinct.created"] == scale.intakes - refused["distinct"]
    assert (load["same.created"], load["same.rows"]) == (scale.rounds, scale.rounds)
    assert load["same.replayed"] == scale.rounds * (scale.same - 1) - refused["same"]
    assert (load["identity.created"], load["identity.conflicts"]) == (1, scale.same - 1 - refused["identity"])
    assert (load["decisions.accepted"], load["decisions.stale"]) == (1, scale.decisions - 1 - refused["decisions"])
    assert load["waiting.created"] + load["waiting.unavailable"] == scale.waiting
    assert load["waiting.partial"] == 0
    assert load["readers.misses"] == 0
    assert load["readers.found"] > 0
    assert load["readers.promoted"] > 0
