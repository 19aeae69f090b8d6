"""What every address shares: strict edges in, problem documents out, and one door into the archive."""

from typing import Any, ClassVar, Final, NoReturn

from rest_framework.exceptions import MethodNotAllowed
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from archive import bindings, canonical, limits
from archive.api import bodies, strict
from archive.api.authentication import BearerToken, Session, caller_in, ends_at, note_use
from archive.api.throttles import CourtesyLimit
from archive.authority import Caller
from archive.refusals import AuthorityRefused, Fault, InvalidRequest, NotAuthenticated

ENDS_HEADER: Final = "Lychd-Token-Expires"
"""The header by which the holder of a token learns that it ends soon."""


class ArchiveView(APIView):
    """Parse, call one operation, render. A body is parsed before the door: a fault in it tells of no namespace."""

    http_method_names: list[str] = ["get", "head", "post"]
    authentication_classes = (BearerToken, Session)
    permission_classes = ()
    parser_classes: tuple[type[BaseParser], ...] = (strict.StrictJSON,)
    renderer_classes = (JSONRenderer,)
    throttle_classes: tuple[type[BaseThrottle], ...] = (CourtesyLimit,)
    metadata_class = None
    versioning_class = None
    format_kwarg = None

    body_limit: ClassVar[int] = limits.BODY_MAX_BYTES
    query: ClassVar[tuple[str, ...]] = ()
    """The names that a read takes in its query string; a write takes none."""
    scope: ClassVar[str] = "writes"
    """The throttle that posts count against; reads have their own."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse what is wrong about the form first, then who asks, then how often; no body is read for a stranger."""
        method = (request.method or "").lower()
        if method not in self.http_method_names or not hasattr(self, method):
            raise MethodNotAllowed(method.upper())
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        if method == "post" and strict.has_body(request._request):
            strict.require_media(request._request)
        self.perform_authentication(request)
        if not request.user or not request.user.is_authenticated:
            raise NotAuthenticated
        self.require_profile()
        self.check_throttles(request)
        bodies.closed(request.query_params, () if method == "post" else self.query)

    def require_profile(self) -> None:
        """Refuse while the archive is off (R-L-010)."""
        bindings.require_profile()

    def scope_of(self, request: Request) -> str:
        """Name the throttle of this request."""
        return self.scope if request.method == "POST" else "reads"

    def permission_denied(self, request: Request, message: str | None = None, code: str | None = None) -> NoReturn:
        """Refuse in our own words."""
        raise AuthorityRefused

    def body(self, request: Request, *, optional: bool = False) -> dict[str, Any]:
        """Return the strictly parsed body; `optional` lets a request without any stand for an empty object."""
        if optional and not strict.has_body(request._request):
            return {}
        return strict.body_of(request._request, self.body_limit)

    def caller(self, request: Request, ns: str) -> Caller:
        """Meet the asker at the door of a namespace; a key that none can have looks like any refusal (S-089)."""
        return caller_in(request, ns)

    def if_match(self, request: Request) -> str | None:
        """Return the If-Match header, the other way to say `expected_version`."""
        given: str | None = request.META.get("HTTP_IF_MATCH")
        if given is not None and "\x00" in given:
            raise InvalidRequest([Fault("", "an If-Match header with one entity tag")])
        return given

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        """Note the token's use once the answer is known to be one."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        if answer.status_code < 400:
            note_use(request)
            if (ends := ends_at(request)) is not None:
                answer[ENDS_HEADER] = canonical.instant(ends)
        return answer
