"""A server that dies while somebody uses it is started again, by whoever uses it, and each of them says so."""

import logging
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lychd.places import EmbeddedError

log = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 1.0
# What is waited between two starts that failed, and after a server that died this often in this time.
_LONGEST_PAUSE: Final = 60.0
_OFTEN: Final = 5
_OFTEN_SECONDS: Final = 600.0
# One old file stays beside the log, so that both together are never much more than twice this.
_LOG_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class Watched:
    """One server: its name in a sentence, whether it died, what starts it, and where it says why."""

    name: str
    died: Callable[[], bool]
    begin: Callable[[], object]
    log: Path
    revived: deque[float] = field(default_factory=lambda: deque(maxlen=_OFTEN))


class Watch:
    """A thread that looks after the servers as long as its `with` lasts and they are wanted."""

    def __init__(self, watched: Sequence[Watched], wanted: Callable[[], bool]) -> None:
        self._watched = watched
        self._wanted = wanted
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._leaving.wait(_EVERY_SECONDS):
            for one in self._watched:
                try:
                    if one.died() and self._wanted():
                        self._revive(one)
                    cut_log(one.log)
                except Exception:
                    # Whatever it was, the next look may find better; without this thread nobody would look again.
                    log.exception("%s could not be looked after.", one.name)

    def _revive(self, one: Watched) -> None:
        """Start a server until it is there, less and less often; several who watch it wait for one another."""
        died = time.monotonic()
        pause = 1.0
        if len(one.revived) == _OFTEN and died - one.revived[0] < _OFTEN_SECONDS:
            log.error(
                "%s died %d times in %.0f minutes; it is started again in %.0f s. %s says why.",
                *(one.name, _OFTEN, _OFTEN_SECONDS / 60, _LONGEST_PAUSE, one.log),
            )
            if self._leaving.wait(_LONGEST_PAUSE):
                return
        else:
            log.error("%s died; it is started again.", one.name)
        while self._wanted():
            try:
                one.begin()
            except Exception as error:
                # A connection's error may quote what was asked; whatever it was, nobody else would try again.
                why = error if isinstance(error, EmbeddedError) else f"{type(error).__name__}."
                log.error("%s does not start: %s It is tried again in %.0f s.", one.name, why, pause)
            else:
                log.warning("%s is back after %.1f s.", one.name, time.monotonic() - died)
                one.revived.append(time.monotonic())
                return
            if self._leaving.wait(pause):
                return
            pause = min(2 * pause, _LONGEST_PAUSE)


def cut_log(file: Path) -> None:
    """Begin a log anew once it is large, keeping the one before it; its writer has it open and only ever appends."""
    try:
        if file.stat().st_size < _LOG_BYTES:
            return
        before = file.with_name(f"{file.name}.1")
        draft = file.with_name(f"{file.name}.draft")
        draft.touch(mode=0o600)
        shutil.copyfile(file, draft)
        draft.rename(before)
        with file.open("r+b") as writing:
            writing.truncate(0)
    except FileNotFoundError:
        return
    except OSError as error:
        # A full disk perhaps: nothing is lost by trying again.
        log.warning("%s cannot be cut (%s).", file, error.strerror)
