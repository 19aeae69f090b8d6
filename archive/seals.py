"""The seal of a receipt: its digest over everything else in it, checked with no database and no settings (R-L-107)."""

from typing import Any, Final

from archive import canonical

LEXICAL_SCHEMA: Final = 1
SEMANTIC_SCHEMA: Final = 2
DIGEST_DOMAIN: Final = {LEXICAL_SCHEMA: canonical.RECEIPT_1, SEMANTIC_SCHEMA: canonical.RECEIPT_2}


def digest_of(receipt: dict[str, Any]) -> str:
    """Recompute a receipt's digest from everything in it but the digest itself; raises `NotCanonical`."""
    schema = receipt.get("schema")
    domain = DIGEST_DOMAIN.get(schema) if type(schema) is int else None
    if domain is None:
        raise canonical.NotCanonical("unknown receipt schema")
    return canonical.digest_of(domain, {key: value for key, value in receipt.items() if key != "receipt_digest"})


def verify(receipt: object) -> bool:
    """Say whether an exported receipt still matches its own digest; needs no database, and any JSON may be given."""
    if not isinstance(receipt, dict):
        return False
    claimed = receipt.get("receipt_digest")
    try:
        return isinstance(claimed, str) and canonical.same(digest_of(receipt), claimed)
    except (canonical.NotCanonical, TypeError, UnicodeEncodeError, RecursionError):
        return False
