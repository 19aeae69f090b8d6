"""Canonical bytes and domain-separated digests (specification 5.3): one form for every identity of the archive.

Real numbers never enter canonical JSON as floats: they travel as `f64:` and 16 hexadecimal digits of their bits, since
JSONB and JSON libraries rewrite numbers and a digest must not depend on them.
"""

import hashlib
import hmac
import math
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import rfc8785

TEXT: Final = "lychd.text@1"
QUERY: Final = "lychd.query@1"
INTAKE_MATERIAL: Final = "lychd.intake.material@1"
INTAKE_REQUEST: Final = "lychd.intake.request@1"
BINDING: Final = "lychd.binding@1"
LEXICAL_REQUEST: Final = "lychd.recall.lexical@1"
PROJECTION: Final = "lychd.projection@1"
RECEIPT_1: Final = "lychd.receipt@1"
RECEIPT_2: Final = "lychd.receipt@2"
LIFECYCLE_REQUEST: Final = "lychd.lifecycle.request@1"
LIFECYCLE_OBJECT: Final = "lychd.lifecycle@1"
LOOKUP: Final = "lychd.lookup@1"
GENERATION: Final = "lychd.generation@1"
EMBED_BINDING: Final = "lychd.embed.binding@1"
DERIVATION: Final = "lychd.derivation@1"
VECTOR: Final = "lychd.vector.f32le@1"
SEMANTIC_REQUEST: Final = "lychd.recall.semantic@1"

_REAL_PREFIX: Final = "f64:"
_INTEGER_MAX: Final = 2**53 - 1


class NotCanonical(ValueError):
    """A value that has no canonical form: a float, an integer beyond 2^53-1, a lone surrogate, a foreign type."""


def encode(value: object) -> bytes:
    """Return the canonical JSON bytes of `value` (RFC 8785, floats refused); raises `NotCanonical`."""
    _refuse_foreign(value)
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise NotCanonical(type(error).__name__) from None


def _refuse_foreign(value: object) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        return
    if isinstance(value, int):
        if abs(value) > _INTEGER_MAX:
            raise NotCanonical("integer beyond 2^53-1")
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise NotCanonical("object keys are ASCII strings")
            _refuse_foreign(item)
        return
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for item in value:
            _refuse_foreign(item)
        return
    raise NotCanonical(f"{type(value).__name__} has no canonical form")


def digest(domain: str, payload: bytes) -> str:
    """Return sha256(domain, NUL, payload) as 64 lower-case hexadecimal characters."""
    return hashlib.sha256(domain.encode("ascii") + b"\x00" + payload).hexdigest()


def digest_of(domain: str, value: object) -> str:
    """Return the digest of the canonical JSON of `value` in `domain`."""
    return digest(domain, encode(value))


def text_digest(text: str) -> str:
    """Return the digest of the exact UTF-8 bytes of a note; nothing is trimmed or normalised."""
    return digest(TEXT, text.encode("utf-8"))


def query_digest(query: str) -> str:
    """Return the digest of the exact UTF-8 bytes of a query."""
    return digest(QUERY, query.encode("utf-8"))


def lookup_digest(action: str, namespace: str, keys: Mapping[str, Any]) -> str:
    """Return the digest of a read's exact question: its action, namespace and keys or page request."""
    return digest_of(LOOKUP, {"action": action, "namespace": namespace, "keys": dict(keys)})


def real(number: float) -> str:
    """Write a finite real as `f64:` and the 16 hexadecimal digits of its big-endian bits; -0.0 becomes +0.0."""
    value = float(number)
    if not math.isfinite(value):
        raise NotCanonical("only finite numbers have a canonical form")
    return _REAL_PREFIX + struct.pack(">d", value + 0.0 if value else 0.0).hex()


def read_real(text: str) -> float:
    """Read a number written by `real`."""
    if not text.startswith(_REAL_PREFIX) or len(text) != len(_REAL_PREFIX) + 16:
        raise NotCanonical("a real is f64: and 16 hexadecimal digits")
    (value,) = struct.unpack(">d", bytes.fromhex(text[len(_REAL_PREFIX) :]))
    return float(value)


def instant(moment: datetime) -> str:
    """Write an aware time as UTC `YYYY-MM-DDTHH:MM:SS.ffffffZ`, six digits always."""
    if moment.tzinfo is None:
        raise NotCanonical("a time needs an offset")
    # Not strftime, which writes the years before 1000 with fewer than four digits.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def identity(value: UUID) -> str:
    """Write a UUID as its 36 lower-case characters."""
    return str(value)


def same(one: str, other: str) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


# The same in SQL, for what the database checks by itself


def sql_digest(domain: str, text: str) -> str:
    """Write the digest of the text that an SQL expression gives, in a domain."""
    return f"encode(sha256(convert_to('{domain}', 'UTF8') || '\\x00'::bytea || convert_to({text}, 'UTF8')), 'hex')"


def sql_object(members: Mapping[str, str]) -> str:
    """Write the canonical JSON of an object whose values are SQL expressions of canonical JSON, none of them null."""
    listed = " || ',' || ".join(f"'\"{name}\":' || {members[name]}" for name in sorted(members))
    return f"('{{' || {listed} || '}}')"


def sql_string(text: str) -> str:
    """Write the canonical JSON of a text; PostgreSQL escapes what RFC 8785 escapes, in the same way."""
    return f"coalesce(to_json({text})::text, 'null')"


def sql_instant(moment: str) -> str:
    """Write a timestamptz as `instant` writes it; a null stays one."""
    return f"to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
