"""Ingest: many texts in as candidates, each under the next revision of its source, safe to interrupt and to repeat.

# Note [Why a repeat completes the rest]
Nothing is remembered outside the archive. The revision is computed from what this subject took in before, and the
request identity from the subject and the whole material. A batch that was committed is found unchanged, one that was
not is sent again under the same identities, and one whose commit nobody heard of is whichever of the two is true.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from archive import canonical, lexical, limits
from archive.authority import Caller
from archive.operations.intake import Admitted, intake_many
from archive.refusals import Refusal, SourceRevisionRevoked, Unavailable
from archive.requests import Intake
from archive.transactions import reading
from inspection.reads import Standing, own_standings
from lychd.commands.acting import caller
from lychd.commands.shelf import Found, Leaf, Unfit, browse
from lychd.commands.telling import Progress, Told, UsageError, on_one_line

REQUEST: Final = "lychd.ingest@1"
_REVISION_DIGITS: Final = 12
_REFUSED, _UNAVAILABLE = 2, 4


@dataclass(slots=True)
class Line:
    """What became of one leaf; the report is made of these."""

    place: str
    outcome: str
    source_key: str | None = None
    source_revision: str | None = None
    note_id: str | None = None
    code: str | None = None
    message: str | None = None

    def refuse(self, refusal: Refusal) -> None:
        self.outcome, self.code = "refused", refusal.code
        self.message = (
            "; ".join(f"{one.pointer.removeprefix('/')}: {one.message}" for one in refusal.faults) or refusal.title
        )

    def as_json(self) -> dict[str, Any]:
        names = ("place", "outcome", "source_key", "source_revision", "note_id", "code", "message")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(slots=True)
class Report:
    """Everything that an ingest did."""

    lines: list[Line] = field(default_factory=list)
    stopped: Refusal | None = None
    unavailable: bool = False


def ingest(options: argparse.Namespace) -> Told:
    """Take in what is under a path; exit 2 if any of it was refused, 4 if the archive did not answer."""
    if not 1 <= options.batch <= limits.BATCH_INTAKE_MAX:
        raise UsageError(f"--batch takes 1 to {limits.BATCH_INTAKE_MAX}")
    writer = caller(options)
    found, total = browse(options.path)
    report = Report()
    planned: dict[str, Standing] = {}
    with Progress("ingest", total) as progress:
        for batch in _batches(found, options.batch):
            _take(writer, batch, report, planned, dry_run=options.dry_run)
            progress.reach(len(report.lines))
            if report.stopped is not None:
                break
    if any(line.outcome == "created" for line in report.lines):
        with reading():
            lexical.vacuum()
    return _told(report, writer, dry_run=options.dry_run)


def _batches(found: Iterable[Found], size: int) -> Iterator[list[Found]]:
    walking = iter(found)
    while batch := list(islice(walking, size)):
        yield batch


def _take(writer: Caller, batch: list[Found], report: Report, planned: dict[str, Standing], *, dry_run: bool) -> None:
    """Plan one batch, send what is new of it, and write down what became of each; order is kept."""
    lines = [_line(one) for one in batch]
    report.lines += lines
    leaves = [(one, line) for one, line in zip(batch, lines, strict=True) if isinstance(one, Leaf)]
    try:
        standings = _standings(writer, [leaf for leaf, _ in leaves])
        if dry_run:
            # Nothing is sent, so what earlier batches would have made is known here alone.
            standings.update(
                {key: one for key, one in planned.items() if key in {leaf.source_key for leaf, _ in leaves}}
            )
        sending, repeats = _plan(writer, leaves, standings)
        if dry_run:
            planned.update(standings)
        elif sending:
            _send(writer, sending, report)
    except Refusal as refusal:
        if not any(line.outcome == "created" for line in report.lines):
            raise
        # What came before stands and is told; the same again would meet the same.
        report.stopped = refusal
        for line in lines:
            if line.outcome in ("new", "unread"):
                line.refuse(refusal)
        return
    for line, first in repeats:
        if first.outcome == "refused":
            line.outcome, line.code, line.message = "refused", first.code, first.message


def _line(one: Found) -> Line:
    if isinstance(one, Leaf):
        return Line(one.place, "unread", one.source_key, one.source_revision)
    if isinstance(one, Unfit):
        return Line(one.place, "refused", code=one.code, message=one.message)
    return Line(one.place, "skipped", message=one.why)


def _standings(writer: Caller, leaves: list[Leaf]) -> dict[str, Standing]:
    keys = sorted({leaf.source_key for leaf in leaves})
    return own_standings(writer, keys) if keys else {}


def _plan(
    writer: Caller, leaves: list[tuple[Leaf, Line]], standings: dict[str, Standing]
) -> tuple[list[tuple[Intake, Line]], list[tuple[Line, Line]]]:
    """Decide what to send; a text that an earlier line of the batch brings is tied to that line's fate."""
    sending: list[tuple[Intake, Line]] = []
    repeats: list[tuple[Line, Line]] = []
    brought: dict[tuple[str, str], Line] = {}
    for leaf, line in leaves:
        digest = canonical.text_digest(leaf.text)
        standing = standings.get(leaf.source_key)
        if leaf.source_revision is None:
            if standing is not None and digest in standing.revoked_digests:
                line.refuse(SourceRevisionRevoked())
                continue
            if standing is not None and standing.newest_digest == digest:
                line.outcome = "unchanged"
                if first := brought.get((leaf.source_key, digest)):
                    repeats.append((line, first))
                continue
        try:
            wanted = _wanted(writer, leaf, digest, standing)
        except Refusal as refusal:
            line.refuse(refusal)
            continue
        line.outcome, line.source_revision = "new", wanted.source_revision
        sending.append((wanted, line))
        brought[leaf.source_key, digest] = line
        standings[leaf.source_key] = _after(standing, wanted.source_revision, digest)
    return sending, repeats


def _wanted(writer: Caller, leaf: Leaf, digest: str, standing: Standing | None) -> Intake:
    number = 1 if standing is None else standing.highest_number + 1
    wanted = Intake(
        request_id="ingest",
        source_key=leaf.source_key,
        source_revision=leaf.source_revision or f"{number}-{digest[:_REVISION_DIGITS]}",
        text=leaf.text,
        asserted_origin=leaf.asserted_origin,
        kind=leaf.kind,
        retention_class=leaf.retention_class,
        retain_until=leaf.retain_until,
        observed_at=leaf.observed_at,
    )
    identity = canonical.digest_of(REQUEST, {"subject": writer.subject, "material": wanted.material(writer.namespace)})
    return replace(wanted, request_id=f"ingest-{identity}")


def _after(standing: Standing | None, revision: str, digest: str) -> Standing:
    """Say where a source will stand once this revision is in."""
    alone = Standing.of([(revision, digest, "candidate")])
    if standing is None:
        return alone
    return Standing(digest, max(standing.highest_number + 1, alone.highest_number), standing.revoked_digests)


def _send(writer: Caller, sending: list[tuple[Intake, Line]], report: Report) -> None:
    answers = intake_many(writer, [wanted for wanted, _ in sending])
    for answer, (_, line) in zip(answers, sending, strict=True):
        if answer.refusal is not None:
            line.refuse(answer.refusal)
            report.unavailable = report.unavailable or isinstance(answer.refusal, Unavailable)
        else:
            admitted: Admitted = answer.given()
            line.outcome, line.note_id = admitted.outcome.value, str(admitted.note.id)


def _told(report: Report, writer: Caller, *, dry_run: bool) -> Told:
    totals = Counter(line.outcome for line in report.lines)
    lines = [
        f"{line.outcome:<9}  {on_one_line(line.place)}"
        + (f"  as {line.source_key}" if line.source_key not in (None, line.place) else "")
        + (f"  {line.source_revision}" if line.source_revision else "")
        + (f"  {line.code}" if line.code else "")
        + (f"  {on_one_line(line.message)}" if line.message else "")
        for line in report.lines
    ]
    summed = ", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items())) or "nothing found"
    lines += ["", f"{'would be, in' if dry_run else 'in'} {writer.namespace} as {writer.subject}: {summed}"]
    if report.stopped is not None:
        lines.append(f"stopped: {report.stopped.title} ({report.stopped.code}). {report.stopped.detail}")
    elif totals["created"]:
        lines.append("They wait as candidates; `lychd notes --state candidate` lists them, `lychd promote` admits one.")
    document: dict[str, Any] = {
        "namespace": writer.namespace,
        "subject": writer.subject,
        "dry_run": dry_run,
        "totals": dict(totals),
        "items": [line.as_json() for line in report.lines],
        "stopped": None if report.stopped is None else report.stopped.code,
    }
    return Told(document, "\n".join(lines), _exit_code(report, totals))


def _exit_code(report: Report, totals: "Counter[str]") -> int:
    if report.stopped is not None:
        return report.stopped.exit_code
    if report.unavailable:
        return _UNAVAILABLE
    return _REFUSED if totals["refused"] else 0
