"""Recalls of one namespace side by side: one client process and eight, beside the exclusive hold and bare SQL."""

import json
import subprocess
import sys
import time
from typing import Final

from archive.lifecycle import State
from archive.operations.transition import promote
from archive.refusals import Refusal
from archive.requests import Transition
from lychd.bench.figures import Figure, clocked
from lychd.bench.ground import NAMESPACE, Ground
from lychd.evaluation.metrics import percentile

CLIENTS: Final = 8
PROMOTIONS: Final = 50
_WITHIN_MS: Final = 2_000.0
_QUESTIONS: Final = 100


class Client:
    """One client process, ready to go."""

    def __init__(self, told: dict[str, object]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lychd.bench.client"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.say(json.dumps(told))

    def say(self, line: str) -> None:
        if self.process.stdin is not None:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def hear(self) -> str:
        return "" if self.process.stdout is None else self.process.stdout.readline()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Clients:
    """Client processes that work at the same time, each in a closed loop of its own."""

    def __init__(self, ground: Ground, kind: str, count: int, seconds: float) -> None:
        told = {
            "database": ground.database,
            "namespace": NAMESPACE,
            "kind": kind,
            "questions": list(ground.asked(_QUESTIONS)),
            "seconds": seconds,
        }
        self.clients = [Client({**told, "offset": place * 7 % _QUESTIONS}) for place in range(count)]
        if any(client.hear().strip() != "ready" for client in self.clients):
            self.end()
            raise RuntimeError("a client process did not start")

    def go(self) -> None:
        """Let all of them begin."""
        for client in self.clients:
            client.say("go")

    def told(self) -> list[float]:
        """Wait for all of them and give the times of all recalls."""
        try:
            return [one for client in self.clients for one in json.loads(client.hear())]
        finally:
            self.end()

    def end(self) -> None:
        for client in self.clients:
            client.end()


def measure(ground: Ground, seconds: float, rounds: int = 3) -> list[Figure]:
    """Throughput of each kind with one client and with eight, in turns; then promotions while eight recall."""
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for kind in ("shared", "exclusive", "bare"):
            for count in (1, CLIENTS):
                clients = Clients(ground, kind, count, seconds)
                clients.go()
                rates.setdefault((kind, count), []).append(len(clients.told()) / seconds)
                ground.progress("sharing", sum(map(len, rates.values())), rounds * 6)
    best = {key: max(values) for key, values in rates.items()}
    figures = []
    gain_bare = best["bare", CLIENTS] / best["bare", 1]
    for kind, note in (
        ("shared", "the operation; baseline: one client"),
        ("exclusive", "the operation under the hold of a change; baseline: one client"),
        ("bare", "the statements of one recall on a plain connection; baseline: one client"),
    ):
        figures.append(Figure(f"sharing.{kind}.8", best[kind, CLIENTS], "recalls/s", best[kind, 1], note))
    gain = best["shared", CLIENTS] / best["shared", 1]
    figures.append(
        Figure("sharing.gain", gain, "times", gain_bare, "eight clients over one; baseline: bare SQL's gain")
    )
    return [*figures, *beside_promotions(ground, seconds)]


def beside_promotions(ground: Ground, seconds: float) -> list[Figure]:
    """Fifty promotions, each committed once, while eight clients recall without a pause."""
    ids = ground.candidates(PROMOTIONS)
    lasting = max(seconds, 15.0)
    clients = Clients(ground, "shared", CLIENTS, lasting)
    clients.go()
    started = time.monotonic()
    times: list[float] = []
    refused = 0
    for place, one in enumerate(ids):
        try:
            times.append(clocked(promote, ground.caller, Transition(one, State.PROMOTED, 1))[0])
        except Refusal:
            refused += 1
        # Spread over the load, so that none of them has it to itself.
        time.sleep(max(0.0, started + (place + 1) * lasting * 0.8 / PROMOTIONS - time.monotonic()))
    covered = time.monotonic() - started < lasting
    clients.told()
    within = sum(one <= _WITHIN_MS for one in times)
    note = f"{refused} refused; {'all' if covered else 'not all'} of them during the load"
    return [
        Figure("sharing.promotions.within_2s", within, f"of {PROMOTIONS}", note=note),
        Figure("sharing.promotions.p50", percentile(times, 0.5), "ms"),
        Figure("sharing.promotions.max", max(times), "ms"),
    ]
