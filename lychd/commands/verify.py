"""Verify an exported receipt anywhere: the digest is recomputed, no database and no settings are touched."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from archive import seals
from archive.refusals import Fault, IntegrityFailure, InvalidRequest
from lychd.commands import strict
from lychd.commands.telling import Told, UsageError, pairs

_LARGEST: Final = 8 * 1024 * 1024


def verify(options: argparse.Namespace) -> Told:
    """Recompute the digest of a receipt in a file; raises `IntegrityFailure` where it does not match."""
    receipt = _receipt(_bytes(options.file))
    if not seals.verify(receipt):
        raise IntegrityFailure
    shown = ("receipt_id", "request_id", "namespace", "subject", "outcome", "created_at", "receipt_digest")
    told = {name: receipt.get(name) for name in shown}
    rows = [(name.replace("_", " "), value) for name, value in told.items()]
    return Told({"verified": True, **told}, "The receipt matches its digest.\n\n" + pairs(rows))


def _bytes(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read(_LARGEST + 1)
        with Path(file).open("rb") as opened:
            return opened.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def _receipt(raw: bytes) -> dict[str, Any]:
    if len(raw) > _LARGEST:
        raise InvalidRequest([Fault("/file", "larger than any receipt")])
    try:
        value = strict.read(raw)
    except strict.NotStrict as wrong:
        raise InvalidRequest([Fault("/file", str(wrong))]) from None
    # The whole answer of a recall is as good as the receipt in it.
    if isinstance(value, dict) and isinstance(value.get("receipt"), dict):
        value = value["receipt"]
    if not isinstance(value, dict) or not isinstance(value.get("receipt_digest"), str):
        raise InvalidRequest([Fault("/file", "no receipt: there is no receipt_digest in it")])
    if value.get("schema") not in seals.DIGEST_DOMAIN or type(value["schema"]) is not int:
        raise InvalidRequest([Fault("/file/schema", "no schema that this version knows")])
    return value
