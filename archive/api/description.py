"""The description of the API (OpenAPI): every operation with its answers, and each code that it can refuse with.

`document` builds the whole and refuses to build it with a warning. Errors are listed an operation: each status with the
codes that it can carry.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from django.conf import settings
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import OpenApiParameter, OpenApiRequest, OpenApiResponse, extend_schema
from drf_spectacular.validation import validate_schema

from archive import limits, refusals
from archive.api.schema import ADDRESS_KEY, PROBLEM, UUID, Schema, whole
from archive.refusals import Refusal

View = TypeVar("View", bound=Callable[..., Any])

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"

NS: Final = OpenApiParameter("ns", ADDRESS_KEY, OpenApiParameter.PATH, description="The namespace.")
NOTE_ID: Final = OpenApiParameter("note_id", UUID, OpenApiParameter.PATH, description="The note.")
REQUEST_ID: Final = OpenApiParameter(
    "request_id", ADDRESS_KEY, OpenApiParameter.PATH, description="The identity that the request was sent with."
)
IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    {"type": "string", "pattern": r'^"[0-9a-f-]{36}\.[1-9][0-9]{0,9}"$'},
    OpenApiParameter.HEADER,
    description="The record's entity tag, in place of `expected_version`.",
)
LIMIT: Final = OpenApiParameter(
    "limit",
    whole(1, limits.PAGE_SIZE_MAX, limits.PAGE_SIZE_DEFAULT),
    OpenApiParameter.QUERY,
    description="How many rows at most.",
)
CURSOR: Final = OpenApiParameter(
    "cursor", {"type": "string", "maxLength": 1024}, OpenApiParameter.QUERY, description="Where the last page ended."
)

ALWAYS: Final[tuple[type[Refusal], ...]] = (
    refusals.InvalidRequest,
    refusals.NotAuthenticated,
    refusals.AuthorityRefused,
    refusals.NotAcceptable,
    refusals.TooManyRequests,
    refusals.Internal,
    refusals.ArchiveTimeout,
    refusals.AuthorityUnavailable,
    refusals.ProfileOff,
    refusals.StorageUnavailable,
)
IN_NAMESPACE: Final = (refusals.NamespaceNotServed, refusals.BindingMismatch)
WITH_BODY: Final = (refusals.CsrfFailed, refusals.BodyTooLarge, refusals.UnsupportedMedia)
WRITING: Final = (refusals.OutcomeUnknown,)


def operation(
    name: str,
    answers: Mapping[int, tuple[str, Schema | None]],
    *,
    tag: str,
    request: Schema | None = None,
    required: bool = True,
    parameters: Sequence[OpenApiParameter] = (),
    refuses: Iterable[type[Refusal]] = (),
) -> Callable[[View], View]:
    """Describe one operation: its answers by status, and every code that it can refuse with."""
    codes: dict[int, set[str]] = {}
    for kind in (*ALWAYS, *refuses, *(WITH_BODY if request is not None else ())):
        codes.setdefault(kind.status, set()).add(kind.code)
    responses: dict[Any, Any] = {
        status: OpenApiResponse(schema, description=words) for status, (words, schema) in answers.items()
    }
    for status, found in sorted(codes.items()):
        told = {"allOf": [PROBLEM, {"type": "object", "properties": {"code": {"enum": sorted(found)}}}]}
        responses[status, PROBLEM_MEDIA_TYPE] = OpenApiResponse(
            told, description=", ".join(f"`{code}`" for code in sorted(found))
        )
    body = {} if request is None else {"request": {"application/json": OpenApiRequest(request)}}
    decorated: Callable[[View], View] = extend_schema(
        operation_id=name,
        tags=[tag],
        parameters=list(parameters),
        responses=responses,
        extensions=None if request is None or not required else {"x-body-required": True},
        **body,  # type: ignore[arg-type]
    )
    return decorated


class _BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "archive.api.authentication.BearerToken"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        said = "A token of `lychd token create`, good in the namespaces that it names."
        return {"type": "http", "scheme": "bearer", "description": said}


class _SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "archive.api.authentication.Session"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "The sign-in of the pages; a write needs the header X-CSRFToken besides.",
        }


class Warned(Exception):
    """The description could not be built without a guess."""


@functools.cache
def document() -> Schema:
    """Build and validate the whole description; raises `Warned` rather than guess."""
    GENERATOR_STATS.reset()
    with GENERATOR_STATS.silence():
        built: Schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    if GENERATOR_STATS:
        raise Warned("\n".join([*GENERATOR_STATS._error_cache, *GENERATOR_STATS._warn_cache]))
    validate_schema(built)  # type: ignore[no-untyped-call]
    return built
