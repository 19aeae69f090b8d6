"""Everything that can be read over HTTP; no answer but a review carries text (R-L-120..147)."""

import re
from typing import Any, ClassVar, Final

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from archive import canonical, limits, refusals
from archive.api import bodies, description
from archive.api import schema as shapes
from archive.api.authentication import caller_in, namespaces_of, subject_of
from archive.api.base import ArchiveView
from archive.authority import Caller
from archive.records import EventRecord, NoteRecord
from archive.refusals import AuthorityRefused, Fault, InvalidRequest
from inspection import discovery, interface, reads
from inspection.api import schema
from inspection.cursors import Page, PageRequest

_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


NAMESPACE: Final = OpenApiParameter(
    "namespace", shapes.ADDRESS_KEY, OpenApiParameter.QUERY, required=True, description="Where."
)


def _page(request: Request) -> PageRequest:
    return PageRequest(bodies.limit(request.query_params), request.query_params.get("cursor"))


def caller_named(request: Request) -> Caller:
    """Meet the asker at the door of the namespace that the query names."""
    namespace = request.query_params.get("namespace")
    if not namespace:
        raise InvalidRequest([Fault("/namespace", "is required")])
    return caller_in(request, namespace)


class Notes(ArchiveView):
    """List notes."""

    query: ClassVar[tuple[str, ...]] = ("state", "source_key", "limit", "cursor")

    @description.operation(
        "listNotes",
        {200: ("One page, oldest first.", schema.NOTES)},
        tag="notes",
        parameters=[
            description.NS,
            OpenApiParameter("state", shapes.NAMED_STATE, OpenApiParameter.QUERY),
            OpenApiParameter("source_key", shapes.IDENTIFIER, OpenApiParameter.QUERY),
            description.LIMIT,
            description.CURSOR,
        ],
        refuses=description.IN_NAMESPACE,
    )
    def get(self, request: Request, ns: str) -> Response:
        """List notes without their text, tombstones included; a namespace without any lists empty."""
        given = request.query_params
        page, state, source_key = _page(request), bodies.state(given), bodies.source_key(given)
        found = reads.list_notes(self.caller(request, ns), page, state=state, source_key=source_key)
        return Response({"items": [note.as_json() for note in found.items], "next_cursor": found.next_cursor})


class NoteRecords(ArchiveView):
    """Read one record."""

    @description.operation(
        "readNote",
        {
            200: ("The record; its ETag names id and version.", shapes.NOTE),
            304: ("Unchanged since the tag in If-None-Match.", None),
        },
        tag="notes",
        parameters=[
            description.NS,
            description.NOTE_ID,
            OpenApiParameter("If-None-Match", {"type": "string"}, OpenApiParameter.HEADER),
        ],
        refuses=(*description.IN_NAMESPACE, refusals.RecordAbsent),
    )
    def get(self, request: Request, ns: str, note_id: str) -> Response:
        """Read one note's metadata, to learn what became of it; a decision still has to name the version it saw."""
        wanted = bodies.note_id(note_id)
        note = reads.note_record(self.caller(request, ns), wanted)
        headers = {"ETag": note.etag}
        if _names(request.META.get("HTTP_IF_NONE_MATCH", ""), note.etag):
            return Response(status=304, headers=headers)
        return Response(note.as_json(), headers=headers)


def _names(if_none_match: str, etag: str) -> bool:
    return if_none_match.strip() == "*" or etag in _ENTITY_TAG.findall(if_none_match)


class NoteEvents(ArchiveView):
    """Read one note's events."""

    @description.operation(
        "readNoteEvents",
        {200: ("Every event, in order of version.", schema.NOTE_EVENTS)},
        tag="notes",
        parameters=[description.NS, description.NOTE_ID],
        refuses=(*description.IN_NAMESPACE, refusals.RecordAbsent),
    )
    def get(self, request: Request, ns: str, note_id: str) -> Response:
        """Read what happened to one note."""
        wanted = bodies.note_id(note_id)
        events = reads.note_events(self.caller(request, ns), wanted)
        return Response({"items": [event.as_json() for event in events]})


class IntakeRecords(ArchiveView):
    """Read one intake request."""

    @description.operation(
        "readIntake",
        {200: ("The request and the note that it led to, as it is now.", schema.INTAKE_RECORD)},
        tag="notes",
        parameters=[description.NS, description.REQUEST_ID],
        refuses=(*description.IN_NAMESPACE, refusals.RecordAbsent),
    )
    def get(self, request: Request, ns: str, request_id: str) -> Response:
        """Read what an intake request led to, for whoever lost the answer."""
        wanted = bodies.request_id(request_id)
        return Response(reads.intake_record(self.caller(request, ns), wanted).as_json())


class OwnIntakes(ArchiveView):
    """List one's own intakes."""

    query: ClassVar[tuple[str, ...]] = ("mine", "limit", "cursor")

    @description.operation(
        "listOwnIntakes",
        {200: ("One page, oldest first.", schema.OWN_INTAKES)},
        tag="notes",
        parameters=[
            description.NS,
            OpenApiParameter(
                "mine",
                {"type": "string", "enum": ["", "true"]},
                OpenApiParameter.QUERY,
                required=True,
                description="Given, and empty or true.",
            ),
            description.LIMIT,
            description.CURSOR,
        ],
        refuses=description.IN_NAMESPACE,
    )
    def get(self, request: Request, ns: str) -> Response:
        """List what the asker took in itself, with the newest decision and its reason."""
        bodies.mine(request.query_params)
        page = _page(request)
        caller = self.caller(request, ns)
        found: Page[NoteRecord] = reads.list_own_intakes(caller, page)
        decisions = reads.own_decisions(caller, [note.id for note in found.items]) if found.items else {}
        return Response(
            {
                "items": [_own_intake(note, decisions.get(note.id)) for note in found.items],
                "next_cursor": found.next_cursor,
            }
        )


def _own_intake(note: NoteRecord, event: EventRecord | None) -> dict[str, Any]:
    decided = event is not None and event.from_state is not None
    return {
        "id": str(note.id),
        "source_key": note.source_key,
        "source_revision": note.source_revision,
        "state": note.state,
        "lifecycle_version": note.lifecycle_version,
        "text_digest": note.text_digest,
        "created_at": canonical.instant(note.created_at),
        "state_changed_at": canonical.instant(note.state_changed_at),
        "decision": {
            "to_state": event.to_state,
            "cause": event.cause,
            "reason": event.reason,
            "created_at": canonical.instant(event.created_at),
        }
        if event is not None and decided
        else None,
    }


class Events(ArchiveView):
    """Follow a namespace."""

    query: ClassVar[tuple[str, ...]] = ("limit", "cursor")

    @description.operation(
        "followEvents",
        {200: ("What happened next, and the cursor to go on with.", schema.EVENTS)},
        tag="notes",
        parameters=[description.NS, description.LIMIT, description.CURSOR],
        refuses=description.IN_NAMESPACE,
    )
    def get(self, request: Request, ns: str) -> Response:
        """Follow everything that happens in a namespace, so that whoever kept a text learns that it was withdrawn."""
        page = _page(request)
        found = reads.namespace_events(self.caller(request, ns), page)
        return Response({"items": [event.as_json() for event in found.items], "next_cursor": found.next_cursor})


class Receipts(ArchiveView):
    """Read one receipt."""

    @description.operation(
        "readReceipt",
        {200: ("The receipt as it was sealed.", schema.HISTORICAL_RECEIPT)},
        tag="recalls",
        parameters=[description.NS, description.REQUEST_ID],
        refuses=(*description.IN_NAMESPACE, refusals.ReceiptAbsent, refusals.IntegrityFailure),
    )
    def get(self, request: Request, ns: str, request_id: str) -> Response:
        """Read a historical receipt; it carries no text and says nothing of what may be recalled today."""
        wanted = bodies.request_id(request_id)
        receipt = reads.receipt(self.caller(request, ns), wanted)
        return Response({"receipt": receipt, "current_eligibility": "not_assessed"})


class Configuration(ArchiveView):
    """Read the configuration."""

    query: ClassVar[tuple[str, ...]] = ("namespace", "limit", "cursor")

    @description.operation(
        "readConfiguration",
        {200: ("The profile, and its bindings in the order of their keys.", schema.CONFIGURATION)},
        tag="configuration",
        parameters=[
            OpenApiParameter("namespace", shapes.ADDRESS_KEY, OpenApiParameter.QUERY),
            description.LIMIT,
            description.CURSOR,
        ],
        refuses=(refusals.NamespaceNotServed,),
    )
    def get(self, request: Request) -> Response:
        """Read what is configured, without a look at any archive table."""
        namespace = request.query_params.get("namespace")
        if namespace is not None and not re.match(limits.ADDRESS_KEY_PATTERN, namespace):
            raise AuthorityRefused
        found = discovery.configuration(subject_of(request), namespace, _page(request), within=namespaces_of(request))
        return Response(found)


class InterfaceProjection(ArchiveView):
    """Read what the admission engine's default asks for."""

    query: ClassVar[tuple[str, ...]] = ("namespace",)

    @description.operation(
        "readInterfaceProjection",
        {200: ("The default Pattern, and whether it asks for this profile here.", schema.INTERFACE)},
        tag="configuration",
        parameters=[NAMESPACE],
        refuses=(refusals.NamespaceNotServed,),
    )
    def get(self, request: Request) -> Response:
        """Say whether the admission engine's default Pattern asks for this profile under this binding."""
        return Response(interface.projection(caller_named(request)).as_json())
