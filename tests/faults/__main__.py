"""`python -m tests.faults [word ...]` plants every fault whose name holds one of the words, all of them without.

Prints a line a fault and what noticed it; ends with 1 when any was missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING

from tests.faults import session

if TYPE_CHECKING:
    from tests.faults.planting import Fault

PROCESSES = 2


def main() -> int:
    """Run the faults in two processes and count."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("words", nargs="*", help="only faults whose names hold one of these words")
    parser.add_argument("--list", action="store_true", help="name the faults and plant none")
    options = parser.parse_args()
    _set_up()
    from tests.faults.registry import FAULTS

    faults = [fault for fault in FAULTS if not options.words or any(word in fault.name for word in options.words)]
    if options.list:
        for fault in faults:
            print(f"{fault.name}: {', '.join(fault.tests)}")
        return 0
    if not faults:
        print("no fault has such a name", file=sys.stderr)
        return 64

    started = time.monotonic()
    lines: SimpleQueue[dict[str, str] | None] = SimpleQueue()
    shards = _shared_out(faults)
    for place, shard in enumerate(shards):
        _start(place, shard, lines)
    found, troubles, open_ = 0, [], len(shards)
    while open_:
        line = lines.get()
        if line is None:
            open_ -= 1
            continue
        print(f"{line['verdict']:<7} {line['fault']} - {line['why']}", flush=True)
        found += line["verdict"] == "found"
        if line["verdict"] != "found":
            troubles.append(line)
    missed = len(faults) - found
    print(f"{len(faults)} faults, {found} found, {missed} missed ({time.monotonic() - started:.0f} s)")
    return 1 if missed or troubles else 0


def _set_up() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings_test")
    django.setup()


def _shared_out(faults: "Sequence[Fault]") -> "list[list[Fault]]":
    """Share faults out among the processes, those of one test to one process: it runs green before and after them."""
    groups: dict[tuple[str, ...], list[Fault]] = defaultdict(list)
    for fault in faults:
        groups[fault.tests].append(fault)
    shards: list[list[Fault]] = [[] for _ in range(PROCESSES)]
    loads = [0] * PROCESSES
    for tests, group in sorted(groups.items(), key=lambda one: -len(one[1])):
        least = loads.index(min(loads))
        shards[least] += group
        # Each test runs twice besides, whatever number of faults it answers for.
        loads[least] += len(group) + 2 * len(tests)
    return [shard for shard in shards if shard]


def _start(shard: int, faults: "Sequence[Fault]", lines: "SimpleQueue[dict[str, str] | None]") -> None:
    reading, writing = os.pipe()
    files = sorted({test.split("::")[0] for fault in faults for test in fault.tests})
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.faults.session", *files],
        env={
            **os.environ,
            session.NAMES: json.dumps([fault.name for fault in faults]),
            session.REPORT: str(writing),
            session.SHARD: str(shard),
        },
        pass_fds=[writing],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(writing)
    told = os.fdopen(reading, encoding="utf-8")
    Thread(target=_listen, args=(process, told, len(faults), lines), daemon=True).start()


def _listen(
    process: "subprocess.Popen[str]", told: IO[str], expected: int, lines: "SimpleQueue[dict[str, str] | None]"
) -> None:
    said: list[str] = []
    assert process.stdout is not None
    output = Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
    output.start()
    heard = 0
    for line in told:
        heard += 1
        lines.put(json.loads(line))
    process.wait()
    output.join()
    if heard < expected:
        lines.put({"fault": "the run itself", "verdict": "broken", "why": "\n" + "".join(said[-60:])})
    lines.put(None)


if __name__ == "__main__":
    sys.exit(main())
