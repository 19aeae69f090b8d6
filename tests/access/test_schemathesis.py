"""The committed description against the running application, by requests that a generator makes up from it.

Whatever is sent, by whomever: the status is described, the answer has the form that is described for it, no cache keeps
it, nothing fails but by a refusal of the closed list, and nothing that was refused changed a row.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from tests.access.doors import CODES
from tests.access.ground import SECRET, Ground, Place

DESCRIPTION: Final = json.loads(
    (Path(__file__).resolve().parents[2] / "docs" / "openapi.json").read_text(encoding="utf-8")
)
SCHEMA: Final = schemathesis.openapi.from_dict(DESCRIPTION)
OPERATIONS: Final = {
    told["operationId"]: (path, method)
    for path, methods in DESCRIPTION["paths"].items()
    for method, told in methods.items()
}
SHOWS_TEXT: Final = frozenset({"review", "resolve", "resolveByMeaning"})
CHECKS: Final = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
BOUNDED: Final = settings(
    max_examples=12,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def application(here: Ground) -> Iterator[Any]:
    """The service in this process, on one connection that stays open from request to request."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    SCHEMA.app = get_wsgi_application()
    yield SCHEMA.app
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def real(place: Place, path: str) -> dict[str, str]:
    """Names of things that there are, for whatever an address wants to have named."""
    note = place.candidate if path.endswith(("/promote", "/text")) else place.promoted
    request = place.intake_id if "/intakes/" in path else place.receipt_id
    if "/semantic-recalls/" in path:
        request = place.meant_id
    names = {"ns": place.key, "note_id": str(note), "request_id": request, "derivation_id": str(place.derivation)}
    names["reference"] = "notes-1"
    return {name: value for name, value in names.items() if f"{{{name}}}" in path}


def unconditional(case: Any) -> Any:
    """The same without a tag that no record has, so that the body decides."""
    case.headers.pop("If-Match", None)
    return case


@pytest.mark.parametrize("who", ["anonymous", "charlie", "neighbour"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_described_is_what_happens(here: Ground, application: Any, name: str, who: str) -> None:
    path, method = OPERATIONS[name]
    operation = SCHEMA[path][method.upper()]
    # The neighbour holds every grant here; it has only itself to harm.
    names = real(here.fresh("others"), path)
    named: dict[str, Any] = {"path_parameters": names} if names else {}
    sound = operation.as_strategy(GenerationMode.POSITIVE, **named)
    cases = st.one_of(
        sound.map(unconditional),
        sound,
        operation.as_strategy(GenerationMode.NEGATIVE, **named),
        operation.as_strategy(GenerationMode.POSITIVE),
    )
    headers = {} if who == "anonymous" else {"Authorization": f"Bearer {here.secrets[who]}"}
    before = here.digest()

    @BOUNDED
    @given(cases)
    def hold(case: Any) -> None:
        nonlocal before
        case.headers.pop("Authorization", None)
        answer = case.call(headers=headers)
        shown = answer.content.decode()
        case.validate_response(answer, checks=CHECKS)
        assert answer.headers["cache-control"] == ["no-store"]
        if answer.status_code >= 400:
            refusal = CODES[json.loads(shown)["code"]]
            assert answer.status_code == refusal.status
            assert answer.status_code < 500 or answer.status_code == 503, shown
        if who != "neighbour":
            assert answer.status_code >= 400, "answered to somebody who may not"
        if who == "anonymous":
            assert answer.status_code in (400, 401, 404, 405, 415), shown
        if not (who == "neighbour" and name in SHOWS_TEXT and answer.status_code == 200):
            assert SECRET not in shown
        after = here.digest()
        if answer.status_code >= 400 or method == "get":
            assert after == before, f"{answer.status_code} changed a row"
        before = after

    hold()
