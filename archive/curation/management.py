"""The page of who may do what, and its changes: each is shown first, and done by a second POST."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_variables

from archive import limits
from archive.authority import Action, Caller
from archive.curation.door import in_namespace
from archive.curation.posted import given as posted
from archive.operations import management
from archive.refusals import AuthorityRefused, Fault, InvalidRequest

_NUMBER_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Change:
    """What is about to be done, in words, and how."""

    heading: str
    tells: str
    button: str
    fields: tuple[str, ...]
    act: Callable[[HttpRequest, Caller, dict[str, str]], HttpResponse]
    danger: bool = False


@in_namespace("GET", "HEAD")
def people(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Who holds which roles here and comes by which tokens."""
    if request.GET.keys() - {"after"} or len(request.GET.getlist("after")) > 1:
        raise InvalidRequest([Fault("", "only this, once: after")])
    shown = management.people(caller, after=request.GET.get("after") or None)
    return render(
        request,
        "curation/people.html",
        {
            "ns": caller.namespace,
            "shown": shown,
            "beginning": "after" not in request.GET,
            "may_configure": management.may(caller, Action.CONFIGURE_NAMESPACE),
            "token_days": limits.TOKEN_LIFETIME_DAYS_DEFAULT,
            "token_days_max": limits.TOKEN_LIFETIME_DAYS_MAX,
        },
    )


@in_namespace("POST")
@sensitive_variables()
def change(request: HttpRequest, caller: Caller, what: str) -> HttpResponse:
    """Show what would be done; with `confirmed` do it."""
    proposed = CHANGES[what]
    given = posted(request, proposed.fields)
    _require(caller)
    if request.POST.get("confirmed") != "yes":
        shown = {
            "ns": caller.namespace,
            "heading": proposed.heading.format(**given, ns=caller.namespace),
            "tells": proposed.tells,
            "button": proposed.button,
            "danger": proposed.danger,
            "given": [(name, value) for name, value in given.items() if value],
        }
        return render(request, "curation/confirm.html", shown)
    return proposed.act(request, caller, given)


def _require(caller: Caller) -> None:
    """Refuse before anything is repeated to somebody who may not; the operation asks again."""
    if not management.may(caller, Action.GRANT):
        raise AuthorityRefused


def _number(name: str, value: str) -> int | None:
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= _NUMBER_DIGITS):
        raise InvalidRequest([Fault(f"/{name}", "a whole number of days")])
    return int(value)


def _done(request: HttpRequest, caller: Caller, told: str) -> HttpResponse:
    messages.success(request, told)
    return redirect("people", ns=caller.namespace)


def _grant(request: HttpRequest, caller: Caller, given: dict[str, str]) -> HttpResponse:
    new = management.give(caller, given["subject"], [given["role"]], days=_number("days", given["days"]))
    if not new:
        return _done(request, caller, f"{given['subject']} held {given['role']} already.")
    told = f"{given['subject']} holds {given['role']} now: {len(new)} new grant{'' if len(new) == 1 else 's'}."
    return _done(request, caller, told)


def _withdraw(request: HttpRequest, caller: Caller, given: dict[str, str]) -> HttpResponse:
    ended = management.withdraw(caller, given["subject"], [given["role"]])
    return _done(request, caller, f"{ended} grant{'' if ended == 1 else 's'} of {given['subject']} ended.")


@sensitive_variables()
def _issue(request: HttpRequest, caller: Caller, given: dict[str, str]) -> HttpResponse:
    days = _number("days", given["days"])
    issued = management.issue(
        caller,
        given["subject"],
        also_for=given["also_for"].split(),
        name=given["name"],
        days=limits.TOKEN_LIFETIME_DAYS_DEFAULT if days is None else days,
    )
    shown = {"ns": caller.namespace, "subject": given["subject"], "secret": issued.secret, "token": issued.token}
    return render(request, "curation/token.html", shown)


def _end_token(request: HttpRequest, caller: Caller, given: dict[str, str]) -> HttpResponse:
    ended = management.end_token(caller, given["prefix"])
    return _done(request, caller, f"The token {ended.prefix}… is ended.")


CHANGES: Final = {
    "grant": Change(
        "Give {role} to {subject}?",
        "Grants hold from the moment they are given, in this namespace, under the owner and policy of today.",
        "Give it",
        ("subject", "role", "days"),
        _grant,
    ),
    "withdraw": Change(
        "Withdraw {role} from {subject}?",
        "Every grant of these actions ends at once, those of other roles that share an action too."
        " The subject feels it at its next request.",
        "Withdraw it",
        ("subject", "role"),
        _withdraw,
        danger=True,
    ),
    "token": Change(
        "Issue a token for {subject}?",
        "Whoever has it acts as this subject here and in the namespaces named besides, as far as its grants go."
        " It opens no other namespace, now or later. It is shown once, on the next page.",
        "Issue and show it",
        ("subject", "name", "days", "also_for"),
        _issue,
    ),
    "token-end": Change(
        "End the token {prefix}…?",
        "Whoever uses it is refused from its next request on. An ended token never comes back.",
        "End it",
        ("prefix",),
        _end_token,
        danger=True,
    ),
}
