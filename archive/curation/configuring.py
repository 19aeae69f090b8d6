"""The page of a namespace's settings: what it is served under, changed by a second POST on exactly what was shown."""

from collections.abc import Iterator
from dataclasses import replace

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from archive.authority import Caller
from archive.bindings import Binding, generation_named, name_of_generation
from archive.curation.door import in_namespace
from archive.curation.posted import given
from archive.operations import host, management
from archive.refusals import BindingMismatch, Fault, InvalidRequest

_FIELDS = ("owner", "policy_revision", "text_configuration", "generation", "second_person")
_MOVED = "These settings were changed meanwhile, so nothing was done. Here is how they stand now."


@in_namespace("GET", "HEAD")
def settings(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Show the settings in a form, to whoever may change them."""
    return _shown(request, caller)


@in_namespace("POST")
def configure(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Show what a change means; with `confirmed` make it."""
    fields = given(request, (*_FIELDS, "seen"))
    wanted = _wanted(caller.binding, fields)
    management.text_configurations(caller)
    host.check_configuration(wanted)
    means = tuple(_means(caller.binding, wanted))
    if fields["seen"] != management.tag_of(caller.binding) and means:
        return _moved(request, caller)
    if not means:
        messages.info(request, "It stands so already; nothing was changed.")
        return redirect("settings", ns=caller.namespace)
    if request.POST.get("confirmed") != "yes":
        changed = [(name, fields[name]) for name in _FIELDS if fields[name] != _values(caller.binding)[name]]
        return _confirm(request, caller, "Change these settings?", means, fields, changed, "Change them")
    try:
        management.configure(caller, wanted, seen=fields["seen"])
    except BindingMismatch:
        return _moved(request, caller)
    if wanted == replace(caller.binding, second_person=wanted.second_person):
        messages.success(request, "The settings are changed.")
        return redirect("settings", ns=caller.namespace)
    return render(request, "curation/configured.html", {"ns": caller.namespace, "wanted": wanted, "means": means})


@in_namespace("POST")
def disable(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Show what it means not to serve this namespace any more; with `confirmed` stop it."""
    fields = given(request, ("seen",))
    management.text_configurations(caller)
    if fields["seen"] != management.tag_of(caller.binding):
        return _moved(request, caller)
    means = (
        "Every call and every page here is refused from the next request on.",
        "Nothing is deleted. Only the host can serve it again.",
    )
    if request.POST.get("confirmed") != "yes":
        heading = f"Stop serving {caller.namespace}?"
        return _confirm(request, caller, heading, means, fields, [], "Stop serving it", danger=True)
    try:
        management.disable(caller, seen=fields["seen"])
    except BindingMismatch:
        return _moved(request, caller)
    return render(request, "curation/configured.html", {"disabled": caller.binding, "means": means[1:]})


def _means(before: Binding, wanted: Binding) -> Iterator[str]:
    """Say what follows from each thing that differs."""
    if (before.owner, before.policy_revision) != (wanted.owner, wanted.policy_revision):
        yield (
            "Grants hold under an owner and a policy revision. Under the new ones nobody may do anything here, you"
            " included, until the host gives grants again or carries them over."
        )
    if (before.digest, before.text_configuration) != (wanted.digest, wanted.text_configuration):
        yield "Notes that are retained already refuse with binding_mismatch until they are migrated."
    if before.text_configuration != wanted.text_configuration:
        yield "After the migration recall by words waits until the words are cut again."
    if before.generation != wanted.generation:
        named = name_of_generation(wanted.generation)
        yield {
            "none": "Nothing is embedded here and recall by meaning is off. What was embedded stays.",
            "default": "The generation of the deployment is used. It has to be registered and derived here.",
        }.get(named, f"The generation {named} is used. It has to be registered and derived here.")
    if before.second_person != wanted.second_person:
        yield (
            "Nobody promotes a note that they took in themselves."
            if wanted.second_person
            else "Whoever took a note in may promote it, if their grants allow both."
        )


def _values(binding: Binding) -> dict[str, str]:
    return {
        "owner": binding.owner,
        "policy_revision": binding.policy_revision,
        "text_configuration": binding.text_configuration,
        "generation": name_of_generation(binding.generation),
        "second_person": "yes" if binding.second_person else "no",
    }


def _wanted(binding: Binding, fields: dict[str, str]) -> Binding:
    if fields["second_person"] not in {"yes", "no"}:
        raise InvalidRequest([Fault("/second_person", "one of yes, no")])
    if not fields["generation"]:
        raise InvalidRequest([Fault("/generation", "default, none, or a reference")])
    return replace(
        binding,
        owner=fields["owner"],
        policy_revision=fields["policy_revision"],
        text_configuration=fields["text_configuration"],
        second_person=fields["second_person"] == "yes",
        generation=generation_named(fields["generation"]),
    )


def _shown(request: HttpRequest, caller: Caller, status: int = 200) -> HttpResponse:
    shown = {
        "ns": caller.namespace,
        "now": _values(caller.binding),
        "seen": management.tag_of(caller.binding),
        "words": management.text_configurations(caller),
        "changeable": management.changeable(),
    }
    return render(request, "curation/settings.html", shown, status=status)


def _moved(request: HttpRequest, caller: Caller) -> HttpResponse:
    messages.error(request, _MOVED)
    return _shown(request, Caller.in_namespace(caller.subject, caller.namespace), status=BindingMismatch.status)


def _confirm(
    request: HttpRequest,
    caller: Caller,
    heading: str,
    means: tuple[str, ...],
    fields: dict[str, str],
    changed: list[tuple[str, str]],
    button: str,
    *,
    danger: bool = False,
) -> HttpResponse:
    shown = {
        "ns": caller.namespace,
        "heading": heading,
        "means": means,
        "fields": fields.items(),
        "changed": changed,
        "button": button,
        "danger": danger,
    }
    return render(request, "curation/confirm_settings.html", shown)
