"""One client process of the shared-recall measurement: asks in a closed loop until its time is over.

Started as `python -m lychd.bench.client`; reads one JSON object, says it is ready, waits for a line, works, tells.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4


def main() -> None:
    """Work as told on stdin and write the count and times of this client to stdout."""
    told = json.loads(sys.stdin.readline())

    import django

    django.setup()
    from lychd import scratch

    with scratch.taken_up(told["database"]):
        ask = KINDS[told["kind"]](told)
        for query in told["questions"][:3]:
            ask(query)
        print("ready", flush=True)
        sys.stdin.readline()
        times = _loop(ask, itertools.cycle(told["questions"][told["offset"] :] + told["questions"]), told["seconds"])
    print(json.dumps(times), flush=True)


def _loop(ask: Callable[[str], object], questions: Iterator[str], seconds: float) -> list[float]:
    times = []
    started = time.perf_counter()
    while (begun := time.perf_counter()) - started < seconds:
        ask(next(questions))
        times.append(1000 * (time.perf_counter() - begun))
    return times


def _asker(told: dict[str, Any]) -> Callable[[str], object]:
    """Recalls through the operation, each with an identity of its own."""
    from archive.authority import Caller
    from archive.operations.recall import recall
    from archive.requests import LexicalRecall
    from lychd import scratch

    caller = Caller.in_namespace(scratch.SUBJECT, told["namespace"])
    return lambda query: recall(caller, LexicalRecall(f"q-{uuid4()}", query, top_k=10))


def _exclusively(told: dict[str, Any]) -> Callable[[str], object]:
    """The same under the hold of a change: what recalls would be if they did not share."""
    from archive.operations import recall as module
    from archive.transactions import locked

    setattr(module, "shared", locked)  # noqa: B010 - what a test would patch, in a process that ends
    return _asker(told)


def _replayer(told: dict[str, Any]) -> Callable[[str], object]:
    """The very statements of one recall on a plain connection: what the server gives when nothing stands before it."""
    from lychd.bench.ground import bare

    recorded = _recorded(told)
    plain = bare()

    def replay(query: str) -> None:
        fresh = {told["questions"][0]: query, _REQUEST: f"q-{uuid4()}", _RECEIPT: str(uuid4())}
        now = datetime.now(UTC)
        with plain.transaction():
            for sql, parameters in recorded:
                renewed = _renewed(parameters, fresh)
                if sql.startswith("INSERT INTO archive_recall"):
                    renewed = _sealed_again(renewed, now)
                cursor = plain.execute(sql, renewed)
                if sql == "SELECT clock_timestamp()":
                    now = cursor.fetchall()[0][0]

    return replay


_REQUEST = "recorded-request"
_RECEIPT = "recorded-receipt"


def _recorded(told: dict[str, Any]) -> list[tuple[str, Any]]:
    from django.db import connection

    from archive.authority import Caller
    from archive.operations.recall import recall
    from archive.requests import LexicalRecall
    from lychd import scratch

    seen: list[tuple[str, Any]] = []

    def note(execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: Any) -> Any:
        seen.append((sql, parameters))
        return execute(sql, parameters, many, context)

    caller = Caller.in_namespace(scratch.SUBJECT, told["namespace"])
    request = f"r-{uuid4()}"
    with connection.execute_wrapper(note):
        receipt = recall(caller, LexicalRecall(request, told["questions"][0], top_k=10)).receipt
    known = {request: _REQUEST, receipt["receipt_id"]: _RECEIPT}
    return [(sql, _renewed(parameters, known)) for sql, parameters in seen]


def _sealed_again(parameters: Sequence[Any], now: datetime) -> list[Any]:
    """The row of a receipt as it is under another identity and at another time; the database takes no other."""
    from archive import canonical, forms, seals

    receipt_id, namespace, request_id, schema, _, written, _, subject, purpose, _ = parameters
    receipt = json.loads(written)
    receipt |= {"receipt_id": str(receipt_id), "request_id": request_id, "created_at": canonical.instant(now)}
    receipt["request_digest"] = forms.FORMS[schema].request_digest(receipt)
    receipt["receipt_digest"] = seals.digest_of(receipt)
    digests = receipt["request_digest"], json.dumps(receipt), receipt["receipt_digest"]
    return [receipt_id, namespace, request_id, schema, *digests, subject, purpose, now]


def _renewed(parameters: Any, fresh: dict[str, str]) -> Any:
    if isinstance(parameters, dict):
        return {key: _renewed(value, fresh) for key, value in parameters.items()}
    if isinstance(parameters, Sequence) and not isinstance(parameters, str):
        return [_renewed(value, fresh) for value in parameters]
    if isinstance(parameters, UUID):
        return _renewed(str(parameters), fresh)
    return fresh.get(parameters, parameters) if isinstance(parameters, str) else parameters


KINDS: dict[str, Callable[[dict[str, Any]], Callable[[str], object]]] = {
    "shared": _asker,
    "exclusive": _exclusively,
    "bare": _replayer,
}


if __name__ == "__main__":
    main()
