"""Bodies and addresses into the requests of this application, by the archive's own strict rules (0.9, R-L-214)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from archive import limits
from archive.api.bodies import MISSING, Fields, uuid_of
from archive.refusals import Fault, InvalidRequest
from semantic.operations.attempts import Attempt
from semantic.requests import SemanticRecall


def recall(body: Mapping[str, Any]) -> SemanticRecall:
    """Read a semantic recall; a vector, an embedder or any other field is refused."""
    fields = Fields(body)
    given: dict[str, Any] = {
        "request_id": fields.text("request_id", required=True),
        "query": fields.text("query", required=True),
        "min_cosine": fields.real("min_cosine", 0.0),
        "top_k": fields.whole("top_k", limits.TOP_K_DEFAULT),
        "char_budget": fields.whole("char_budget", limits.CHAR_BUDGET_DEFAULT),
    }
    if "min_cosine" not in body:
        fields.wrong("min_cosine", MISSING)
    fields.close()
    wanted = fields.build(lambda: SemanticRecall(**given))
    fields.settle()
    if wanted is None:
        raise InvalidRequest
    return wanted


def preparation(body: Mapping[str, Any]) -> UUID:
    """Read which note is to be prepared."""
    fields = Fields(body)
    note_id = fields.uuid("note_id")
    fields.close()
    fields.settle()
    return note_id


def attempt(body: Mapping[str, Any], derivation_id: UUID) -> Attempt:
    """Read which row version the caller saw, and whether an old attempt is to be taken up again."""
    fields = Fields(body)
    version = fields.whole("expected_row_version", required=True)
    retry = fields.flag("retry")
    fields.close()
    if not fields.faults and not 1 <= version < 2**31:
        fields.wrong("expected_row_version", "a whole number, 1 or more")
    fields.settle()
    return Attempt(derivation_id, version, retry)


def derivation_id(text: str) -> UUID:
    """Read the derivation's identity in an address."""
    found = uuid_of(text)
    if found is None:
        raise InvalidRequest([Fault("/derivation_id", "a UUID as 36 lower-case characters")])
    return found
