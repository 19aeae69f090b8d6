"""JSON as the archive takes it: no duplicate keys, no NaN, no lone surrogates (0.9)."""

import json
from typing import Any, NoReturn


class NotStrict(ValueError):
    """The bytes are no JSON that the archive takes; the message quotes nothing of them."""


def read(raw: bytes) -> Any:
    """Read one JSON value from UTF-8 bytes; raises `NotStrict`."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise NotStrict("not UTF-8") from None
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
        # Escapes can smuggle in half of a surrogate pair, which no UTF-8 database can hold.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except NotStrict:
        raise
    except UnicodeEncodeError:
        raise NotStrict("holds a lone surrogate") from None
    except (ValueError, RecursionError):
        raise NotStrict("not JSON") from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("names a key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise NotStrict(f"{name} is no JSON number")
