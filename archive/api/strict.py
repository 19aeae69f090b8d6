"""The one JSON parser of every door (0.9): what is not exactly what it seems is refused, and the answer says where.

The size is bounded while reading, not after it. No message quotes the body: a pointer and a rule are enough to mend it.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, Final

from django.http import HttpRequest
from rest_framework.parsers import BaseParser

from archive import limits
from archive.refusals import BodyTooLarge, Fault, InvalidRequest, UnsupportedMedia

MEDIA_TYPE: Final = "application/json"
FAULTS_MAX: Final = 50
"""An answer names at most so many faults; mending those shows the rest."""

_CHARSET: Final = re.compile(r'\s*charset\s*=\s*"?utf-?8"?\s*', re.IGNORECASE)
_BOM: Final = b"\xef\xbb\xbf"
# Whole strings or brackets. An unterminated string runs to the end, so that no input is scanned twice.
_TOKENS: Final = re.compile(r'"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_SHOWN_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_INTEGER_DIGITS: Final = 17


class _Wrong:
    """Stands where the parser met a value that JSON allows or Python tolerates, and we do not."""

    def __init__(self, message: str) -> None:
        self.message = message


class _Object(dict[str, Any]):
    """An object that remembers which of its names were given twice."""

    twice: tuple[str, ...] = ()


def body_of(request: HttpRequest, most: int) -> dict[str, Any]:
    """Return the JSON object in a request's body; raises `UnsupportedMedia`, `BodyTooLarge` or `InvalidRequest`."""
    if not has_body(request):
        raise InvalidRequest([Fault("", "one JSON object")])
    require_media(request)
    return parse(_read(request, most, _declared_length(request)))


def require_media(request: HttpRequest) -> None:
    """Refuse, before a byte is read, what does not say that it is plain JSON in UTF-8."""
    given: str = request.META.get("CONTENT_TYPE", "")
    if "," in given:
        raise InvalidRequest([Fault("", "one Content-Type header")])
    kind, *parameters = given.split(";")
    if kind.strip().lower() != MEDIA_TYPE or any(part.strip() and not _CHARSET.fullmatch(part) for part in parameters):
        raise UnsupportedMedia
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() not in {"", "identity"}:
        raise UnsupportedMedia


def has_body(request: HttpRequest) -> bool:
    """Say whether a request brings a body: a media type alone, as many clients send with each POST, is none."""
    chunked: str = request.META.get("HTTP_TRANSFER_ENCODING", "")
    return bool(_declared_length(request) or chunked)


def _declared_length(request: HttpRequest) -> int:
    given: str = request.META.get("CONTENT_LENGTH") or "0"
    if not (given.isascii() and given.isdigit()) or len(given) > 18:
        raise InvalidRequest([Fault("", "a Content-Length that is a number")])
    return int(given)


def _read(request: HttpRequest, most: int, declared: int) -> bytes:
    if declared > most:
        raise BodyTooLarge
    # One byte more than is allowed tells a body that announced no length, or a wrong one.
    content: bytes = request.read(most + 1)
    if len(content) > most:
        raise BodyTooLarge
    return content


def parse(content: bytes) -> dict[str, Any]:
    """Read one JSON object strictly; every fault that can be placed has a JSON pointer."""
    if content.startswith(_BOM):
        raise InvalidRequest([Fault("", "JSON without a byte order mark")])
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest([Fault("", f"JSON in UTF-8; byte {error.start} is not")]) from None
    _require_depth(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            [Fault("", f"one JSON object; line {error.lineno}, column {error.colno} does not go on as one")]
        ) from None
    if not isinstance(value, dict):
        raise InvalidRequest([Fault("", "one JSON object")])
    faults = []
    for fault in _walk(value, ""):
        faults.append(fault)
        if len(faults) == FAULTS_MAX:
            break
    if faults:
        raise InvalidRequest(faults)
    return value


def _require_depth(text: str) -> None:
    depth = 0
    for found in _TOKENS.finditer(text):
        mark = text[found.start()]
        if mark in "[{":
            depth += 1
            if depth > limits.BODY_MAX_DEPTH:
                raise InvalidRequest([Fault("", f"at most {limits.BODY_MAX_DEPTH} levels of objects and arrays")])
        elif mark in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) != len(pairs):
        made.twice = tuple(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
    return made


def _integer(digits: str) -> int | _Wrong:
    # Judged by length first: a conversion of thousands of digits is slow, and its error speaks of the interpreter.
    if len(digits) <= _INTEGER_DIGITS and abs(int(digits)) <= limits.INTEGER_MAX:
        return int(digits)
    return _Wrong(f"a number between -{limits.INTEGER_MAX} and {limits.INTEGER_MAX}")


def _real(digits: str) -> float | _Wrong:
    value = float(digits)
    return value if math.isfinite(value) else _Wrong("a finite number")


def _constant(name: str) -> _Wrong:
    return _Wrong("a finite number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant
)


def _walk(value: Any, pointer: str) -> Iterator[Fault]:
    if isinstance(value, _Wrong):
        yield Fault(pointer, value.message)
    elif isinstance(value, str):
        if (message := _unstorable(value)) is not None:
            yield Fault(pointer, message)
    elif isinstance(value, _Object):
        for name in value.twice:
            yield Fault(*placed(pointer, name, "given twice"))
        for name, item in value.items():
            if (message := _unstorable(name)) is not None:
                yield Fault(pointer, f"the name of a field {message}")
            else:
                yield from _walk(item, f"{pointer}/{_shown(name)}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _walk(item, f"{pointer}/{place}")


def _unstorable(text: str) -> str | None:
    if "\x00" in text:
        return "holds a NUL character"
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return "holds a lone surrogate"
    return None


def _shown(name: str) -> str:
    return name if _SHOWN_NAME.fullmatch(name) else "?"


def placed(pointer: str, name: str, message: str) -> tuple[str, str]:
    """Return where a field stands and what is wrong with it; a name that could be a text is not repeated."""
    if _SHOWN_NAME.fullmatch(name):
        return f"{pointer}/{name}", message
    return pointer, f"a field whose name is not shown here: {message}"


class StrictJSON(BaseParser):
    """The only parser of the service, for whatever in the framework asks for one; views call `body_of` themselves."""

    media_type = MEDIA_TYPE

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        """Read at most 256 KiB from the stream, strictly."""
        content: bytes = stream.read(limits.BODY_MAX_BYTES + 1)
        if len(content) > limits.BODY_MAX_BYTES:
            raise BodyTooLarge
        return parse(content)
