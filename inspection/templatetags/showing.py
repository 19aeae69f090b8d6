"""How records look on a page: ages, states, digests, bars. Every tag formats; none queries."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from archive import canonical
from archive.lifecycle import State

register = template.Library()

_UNITS: Final = ((365 * 86_400, "y"), (30 * 86_400, "mo"), (7 * 86_400, "w"), (86_400, "d"), (3_600, "h"), (60, "min"))
_MEANING: Final = {
    State.CANDIDATE: "waiting for a decision",
    State.PROMOTED: "recalled by agents",
    State.ARCHIVED: "kept, no longer recalled",
    State.REVOKED: "text destroyed",
}
LEADS_TO: Final = {
    "home": "Home",
    "review": "Review",
    "notes": "Notes",
    "search": "Search",
    "receipts": "Receipts",
    "events": "Events",
    "people": "People",
    "configuration": "Configuration",
    "generations": "Generations",
    "find": "Find",
}
"""Pages that every namespace has: where a chosen one is entered."""
_JOINT: Final = re.compile(r"(?<=[/:._-])")
_BAR_WIDTH: Final = 640
_BAR_LEAST: Final = 6
_CHART_HEIGHT: Final = 96
_CHART_STEP: Final = 20
_CHART_LEAST: Final = 4


def _age(moment: datetime) -> str:
    seconds = int((timezone.now() - moment).total_seconds())
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return "now"


@register.filter
def age(moment: datetime) -> SafeString:
    """A short age that carries its full time."""
    exact = timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, _age(moment))


@register.filter
def full_time(moment: datetime) -> SafeString:
    """A time in full, in the zone of the service."""
    exact = timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), exact)


@register.filter
def instant(text: str) -> datetime:
    """The time that a receipt wrote as text."""
    return datetime.fromisoformat(text)


@register.filter
def meaning(state: str) -> str:
    """What a state means to a reader, in four words."""
    return _MEANING[State(state)]


@register.filter
def badge(state: str) -> SafeString:
    """A state as a word with a mark of its own; the colour only repeats it."""
    return format_html('<span class="state {}">{}</span>', state, state)


@register.filter
def short(digest: object) -> SafeString:
    """The beginning of a digest or identifier, the whole of it in its title."""
    whole = str(digest)
    return format_html('<code title="{}">{}…</code>', whole, whole[:8])


@register.filter
def breakable(key: str) -> SafeString:
    """A long key that may break after its separators, and is copied without them."""
    # In one go: a page of the queue has forty of them.
    return mark_safe(_JOINT.sub("<wbr>", escape(key)))  # noqa: S308 - escaped first


@register.filter
def score(text: str) -> str:
    """A real number of a receipt, to four places."""
    return f"{canonical.read_real(text):.4f}"


@register.filter
def words(name: str) -> str:
    """A name of a closed list, as words."""
    return str(name).replace("_", " ")


@register.filter
def ticked(sentence: str) -> SafeString:
    """A sentence whose `commands` are set as code."""
    parts = sentence.split("`")
    return format_html_join("", "{}", ((_code(part) if place % 2 else part,) for place, part in enumerate(parts)))


def _code(part: str) -> SafeString:
    return format_html("<code>{}</code>", part)


@register.simple_tag
def day_chart(days: Sequence[Any]) -> dict[str, Any]:
    """Lay decisions out as one column a day, each kind stacked; a day without any has no column."""
    most = max((sum(one.counts.values()) for one in days), default=0)
    columns: list[dict[str, Any]] = []
    for place, one in enumerate(days):
        y = _CHART_HEIGHT
        for state, count in one.counts.items():
            if count:
                height = max(_CHART_LEAST, round((_CHART_HEIGHT - 2 * _CHART_LEAST) * count / most))
                y -= height
                columns.append({"state": state, "x": place * _CHART_STEP, "y": max(y, 0), "height": height})
    totals = {state: sum(one.counts[state] for one in days) for state in (days[0].counts if days else ())}
    return {
        "columns": columns,
        "width": len(days) * _CHART_STEP,
        "height": _CHART_HEIGHT,
        "total": sum(totals.values()),
        "sentence": f"Decisions of {len(days)} days: " + ", ".join(f"{n} {state}" for state, n in totals.items()),
        "busy": [one for one in days if any(one.counts.values())],
    }


@register.simple_tag
def state_bar(counts: Mapping[str, int]) -> dict[str, Any]:
    """Lay the four states out as one bar: each that has notes is seen, however few they are."""
    total = sum(counts.values())
    filled = [state for state in State if counts[state]]
    spare = _BAR_WIDTH - _BAR_LEAST * len(filled) - 3 * max(0, len(filled) - 1)
    parts: list[dict[str, Any]] = []
    x = 0
    for state in filled:
        width = _BAR_LEAST + round(spare * counts[state] / total)
        parts.append({"state": state.value, "x": x, "width": width})
        x += width + 3
    return {
        "parts": parts,
        "width": max(x - 3, 1),
        "sentence": ", ".join(f"{counts[state]} {state.value}" for state in State),
    }


@register.filter
def entered_at(name: str | None) -> str:
    """The page at which another namespace is entered from this one."""
    return name if name in LEADS_TO else "home"
