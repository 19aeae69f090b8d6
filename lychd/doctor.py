"""What is checked of an installation, changing nothing: each finding says what is so and what mends it if it is wrong.

The connection is read only while the checks run, so PostgreSQL itself refuses a check that would write.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections

from archive import canonical, lexical, limits, receipts, transactions
from archive.bindings import Binding
from archive.models import ConfiguredBinding, Namespace, Recall, Token
from lychd import condition, dependencies, embedded, inventory, recomputed, roles, upgrades

LEAST_VERSION: Final = 170_000
LEAST_VECTOR: Final = (0, 8)
CLOCK_SECONDS: Final = 5.0
NOTES_SAMPLED: Final = 50
RECEIPTS_SAMPLED: Final = 200
BROKER_SECONDS: Final = 2.0
_DIFFERENCES: Final = 40
_NAMED: Final = 5


class Verdict(StrEnum):
    """How a check ended; only `FAILED` makes the installation unfit."""

    OK = "ok"
    NOTICE = "notice"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what it looked at, how it ended, what was seen, and what mends it."""

    check: str
    verdict: Verdict
    seen: str
    fix: str | None = None

    def as_json(self) -> dict[str, str | None]:
        return {"check": self.check, "verdict": self.verdict.value, "seen": self.seen, "fix": self.fix}


def ok(check: str, seen: str) -> Finding:
    return Finding(check, Verdict.OK, seen)


def notice(check: str, seen: str, fix: str) -> Finding:
    return Finding(check, Verdict.NOTICE, seen, fix)


def failed(check: str, seen: str, fix: str) -> Finding:
    return Finding(check, Verdict.FAILED, seen, fix)


def examine(*, deep: bool = False) -> list[Finding]:
    """Check everything in an order in which each check can rely on those before it."""
    found = list(_embedded()) if settings.LYCHD_EMBEDDED else []
    if any(one.verdict is Verdict.FAILED for one in found):
        return found
    try:
        found.append(_server())
    except Error as error:
        return [*found, _away("server", error)]
    with _read_only():
        for check in (_extensions, _migrations):
            found += _asked(check)
        if any(one.verdict is Verdict.FAILED for one in found):
            return found
        for check in (_schema, _fences, _profile, _namespaces, _tokens):
            found += _asked(check)
        found += _asked(lambda: _postings(deep=deep))
        found += _asked(lambda: _derivations(deep=deep))
        found += _asked(lambda: _receipts(deep=deep))
        found += _asked(_tombstones) if deep else []
        found += _asked(lambda: _recomputed(deep=deep))
        found += _asked(_clock)
        found += _asked(_disk)
        found += _asked(_broker)
    return found


def _asked(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Run one check; one that the database refuses to answer is a finding, not the end."""
    try:
        return list(check())
    except Error as error:
        return [_away(getattr(check, "__name__", "check").strip("_").replace("<lambda>", "index"), error)]


def _away(check: str, error: Error) -> Finding:
    """Say why the database did not answer a check."""
    outage, sqlstate = transactions.outage_of(error), transactions.sqlstate_of(error)
    if outage is None:
        return failed(check, f"The database refused to answer (SQLSTATE {sqlstate}).", "Run `lychd migrate`.")
    return failed(check, f"{outage.title} (SQLSTATE {sqlstate or outage.sqlstate}).", outage.fix)


@contextmanager
def _read_only() -> Iterator[None]:
    _rows("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    try:
        yield
    finally:
        connection = connections[DEFAULT_DB_ALIAS]
        if connection.is_usable():
            _rows("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE")
        else:
            connection.close()


def _rows(question: str, *values: int | str | None) -> list[Any]:
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(question, list(values) or None)
        return list(cursor.fetchall()) if cursor.description else []


def _embedded() -> Iterator[Finding]:
    """Look at the instance's own server; a check that started it would judge its own work."""
    seen = condition.look(settings.LYCHD_STATE_DIR)
    for told in condition.deaths(settings.LYCHD_STATE_DIR):
        yield notice("deaths", told, f"{embedded.log_path(settings.LYCHD_STATE_DIR)} may say why.")
    yield ok("embedded", seen.seen) if seen.runs else failed("embedded", seen.seen, str(seen.fix))


def _server() -> Finding:
    ((number, version),) = _rows("SELECT current_setting('server_version_num')::int, current_setting('server_version')")
    if number < LEAST_VERSION:
        return failed("server", f"PostgreSQL {version}", "Use PostgreSQL 17 or newer.")
    return ok("server", f"PostgreSQL {version}")


def _extensions() -> Iterator[Finding]:
    found = dict(_rows("SELECT extname, extversion FROM pg_catalog.pg_extension"))
    vector = found.get("vector")
    if vector is None or tuple(int(part) for part in vector.split(".")[:2]) < LEAST_VECTOR:
        yield failed("pgvector", vector or "missing", "As a superuser: CREATE EXTENSION vector (0.8 or newer).")
    else:
        yield ok("pgvector", vector)
    if "pg_trgm" not in found:
        yield failed("pg_trgm", "missing", "As a superuser: CREATE EXTENSION pg_trgm.")
    else:
        yield ok("pg_trgm", found["pg_trgm"])


def _migrations() -> Iterator[Finding]:
    waiting, strangers = upgrades.pending(DEFAULT_DB_ALIAS), upgrades.unknown(DEFAULT_DB_ALIAS)
    if strangers:
        seen = f"a newer release made {len(strangers)}: {', '.join(strangers[:_NAMED])}"
        yield failed("migrations", seen, "Run that release, or its `lychd migrate` backwards.")
    elif waiting:
        names = ", ".join(waiting[:_NAMED])
        yield failed("migrations", f"{len(waiting)} not applied: {names}", "Run `lychd migrate`.")
    else:
        yield ok("migrations", "all applied")


def _schema() -> Iterator[Finding]:
    """Compare everything that the tables consist of, and how words are cut, with what the release carries."""
    found = inventory.differences(DEFAULT_DB_ALIAS)
    for one in found[:_DIFFERENCES]:
        yield (failed if one.grave else notice)(f"{one.kind} {one.name}", one.what, one.fix)
    if more := found[_DIFFERENCES:]:
        yield failed("schema", f"{len(more)} more objects are not as the release has them", "Mend these first.")
    if not found:
        number = sum(len(objects) for objects in inventory.released().values())
        yield ok("schema", f"{number} objects as the release has them")
    cut, expected = inventory.words(DEFAULT_DB_ALIAS), inventory.released()["words"]
    used = sorted(set(Namespace.objects.values_list("text_configuration", flat=True)))
    if moved := [name for name in used if name in expected and cut.get(name) != expected[name]]:
        seen = f"{', '.join(moved)} cuts words otherwise than where this release was tested"
        yield notice("words", seen, "Recall answers by this server's cut; compare its version and LC_CTYPE.")
    else:
        yield ok("words", "cut as where this release was tested")


# What the checks of the database say by number, as lines of their own where all is well.
_FENCES: Final = {
    "lychd.E101": ("superuser", "serves as no superuser"),
    "lychd.E102": ("owner", "serves as a role that owns no table"),
    "lychd.E103": ("pgtrigger.ignore", "switches nothing off"),
    "lychd.E104": ("search paths", "pinned on every function"),
    "lychd.E105": ("LC_CTYPE", "neither C nor POSIX"),
    "lychd.E106": ("privileges", "equal the committed list"),
    "lychd.E107": ("trigger functions", "lent to nobody"),
    "lychd.W102": ("temporary tables", "made by nobody"),
    "lychd.W104": ("connections", "for the owner and the serving role alone"),
    "lychd.W105": ("large objects", "made by nobody"),
    "lychd.W101": ("log", "quotes no parameter and no row"),
}


def _fences() -> Iterator[Finding]:
    messages = {message.id: message for message in roles.check_database(databases=[DEFAULT_DB_ALIAS])}
    for number, (check, well) in _FENCES.items():
        message = messages.pop(number, None)
        if message is None:
            yield ok(check, well)
        elif message.is_serious():
            yield failed(check, str(message.msg), str(message.hint))
        else:
            yield notice(check, str(message.msg), str(message.hint))
    for message in messages.values():
        yield failed(str(message.id), str(message.msg), str(message.hint))


def _profile() -> Iterator[Finding]:
    if settings.LYCHD_ARCHIVE is None:
        yield notice(
            "profile", "off: nothing is admitted or recalled", "Run `lychd init`, or set LYCHD_ARCHIVE_PROFILE."
        )
    else:
        yield ok("profile", str(settings.LYCHD_ARCHIVE["profile"]))


def _namespaces() -> Iterator[Finding]:
    retained = {row.key: row for row in Namespace.objects.order_by("key")}
    configured = {row.namespace_key: row for row in ConfiguredBinding.objects.order_by("namespace_key")}
    served = [row for row in configured.values() if row.disabled_at is None]
    yield ok("namespaces", f"{len(served)} served, {len(retained)} retained")
    for key, row in configured.items():
        if row.disabled_at is not None:
            yield notice(
                f"namespace {key}", "disabled; its rows stay", f"To serve it: `lychd namespace configure {key} …`."
            )
        elif key in retained and not _agree(row, retained[key]):
            yield notice(
                f"namespace {key}",
                "retained under another binding; it refuses",
                f"`lychd namespace migrate --namespace {key} --as OPERATOR --reason WHY`.",
            )
    moved = set(lexical.moved())
    for key, namespace in retained.items():
        rebuild = f"Run `lychd lexical rebuild --namespace {key}`."
        if namespace.lexical_state != "ready":
            yield notice(f"words of {key}", "being rebuilt; recall waits", rebuild)
        elif key in moved:
            yield failed(f"words of {key}", "cut by another lexer than this server's", rebuild)


def _agree(row: ConfiguredBinding, namespace: Namespace) -> bool:
    binding = Binding(row.namespace_key, row.owner, row.policy_revision, row.text_configuration)
    return (binding.digest, binding.text_configuration) == (namespace.binding_digest, namespace.text_configuration)


_FIGURES: Final = """
    SELECT n.key, n.id, n.text_configuration, coalesce(c.notes, 0), coalesce(c.total_length, 0),
           (SELECT count(*) FROM archive_note t WHERE t.namespace_id = n.id AND t.state = 'promoted'),
           (SELECT count(DISTINCT p.note_number) FROM archive_posting p WHERE p.namespace_id = n.id AND NOT EXISTS (
               SELECT FROM archive_note t WHERE t.note_number = p.note_number AND t.namespace_id = n.id
               AND t.state = 'promoted')),
           (SELECT coalesce(sum(length), 0) FROM (
               SELECT max(length) AS length FROM archive_posting p
               WHERE p.namespace_id = n.id GROUP BY p.note_number) l)
    FROM archive_namespace n LEFT JOIN archive_corpus c ON c.namespace_id = n.id
    WHERE n.lexical_state = 'ready' ORDER BY n.key
"""

# Notes whose postings are not exactly the words of their text today, newest first as far as the sample goes.
_WORDS: Final = """
    SELECT count(*), count(*) FILTER (WHERE differs) FROM (
        SELECT EXISTS (
            SELECT FROM (SELECT lexeme COLLATE "C" AS lexeme, tf
                         FROM archive_lexemes(%s::text::regconfig, t.text, true)) w
            FULL JOIN (SELECT lexeme, tf FROM archive_posting p
                       WHERE p.namespace_id = t.namespace_id AND p.note_number = t.note_number) p USING (lexeme)
            WHERE w.tf IS DISTINCT FROM p.tf) AS differs
        FROM (SELECT namespace_id, note_number, text FROM archive_note
              WHERE namespace_id = %s::bigint AND state = 'promoted'
              ORDER BY note_number DESC LIMIT %s::bigint) t
    ) judged
"""


def _postings(*, deep: bool) -> Iterator[Finding]:
    looked = 0
    for key, row_id, configuration, notes, length, promoted, strays, true_length in _rows(_FIGURES):
        rebuild = f"Run `lychd lexical rebuild --namespace {key}`."
        if (notes, length) != (promoted, true_length):
            seen = f"the figures say {notes} notes and {length} words, the truth is {promoted} and {true_length}"
            yield failed(f"index of {key}", seen, rebuild)
        if strays:
            yield failed(f"index of {key}", f"words of {strays} notes that are not promoted", rebuild)
        ((judged, differing),) = _rows(_WORDS, configuration, row_id, None if deep else NOTES_SAMPLED)
        looked += judged
        if differing:
            yield failed(f"index of {key}", f"{differing} of {judged} notes have other words than their text", rebuild)
    yield ok("index", f"figures of every namespace compared, {looked} notes cut again")


_ATTEMPTS: Final = """
    SELECT n.key, g.reference, b.generation, count(*) FILTER (WHERE d.state = 'complete'),
           count(*) FILTER (WHERE d.state = 'prepared'),
           count(*) FILTER (WHERE d.state = 'running' AND d.deadline <= clock_timestamp()),
           count(*) FILTER (WHERE d.state = 'failed')
    FROM semantic_derivation d JOIN archive_namespace n ON n.id = d.namespace_id
    JOIN semantic_generation g ON g.id = d.generation_id LEFT JOIN lychd_binding b ON b.namespace_key = n.key
    GROUP BY n.key, g.reference, b.generation ORDER BY n.key, g.reference
"""

# What is searched, what is counted and what is complete are three tables that one trigger keeps equal.
_VECTORS: Final = """
    SELECT n.key, g.reference, coalesce(c.rebuilding, false), coalesce(c.complete, 0),
           (SELECT count(*) FROM semantic_scan s WHERE s.generation_id = g.id),
           (SELECT count(*) FROM semantic_derivation d WHERE d.generation_id = g.id AND d.state = 'complete'),
           (SELECT count(*) FROM semantic_derivation d JOIN semantic_scan s ON s.derivation_id = d.id
            WHERE d.generation_id = g.id AND s.generation_id = g.id AND d.state = 'complete')
    FROM semantic_generation g JOIN archive_namespace n ON n.id = g.namespace_id
    LEFT JOIN semantic_coverage c ON c.generation_id = g.id ORDER BY n.key, g.reference
"""


# The copies that are not what the trigger makes of their vectors.
_COPIES: Final = """
    SELECT n.key, g.reference, count(*)
    FROM semantic_scan s JOIN semantic_derivation d ON d.id = s.derivation_id AND d.state = 'complete'
    JOIN semantic_generation g ON g.id = d.generation_id JOIN archive_namespace n ON n.id = g.namespace_id
    WHERE s.half IS DISTINCT FROM subvector(l2_normalize(d.vector)::halfvec, 1,
        coalesce((g.manifest #>> '{embed_binding,padding,from}')::integer, d.dimensions))
    GROUP BY n.key, g.reference ORDER BY n.key, g.reference
"""


def _derivations(*, deep: bool) -> Iterator[Finding]:
    """Count what waits for somebody: a message that was lost leaves its row prepared, and nothing sends it again."""
    complete = 0
    default = ((settings.LYCHD_ARCHIVE or {}).get("derivation") or {}).get("generation")
    for key, reference, own, done, prepared, expired, failed_ in _rows(_ATTEMPTS):
        complete += done
        configured = reference == (default if own is None else own)
        if (prepared or expired or failed_) and not configured:
            seen = f"{prepared + expired + failed_} of {reference} wait, which is configured no more"
            fix = f"`lychd generation retire {reference} --namespace {key} --as OPERATOR` ends them."
            yield notice(f"derivations of {key}", seen, fix)
            continue
        if prepared:
            seen = f"{prepared} of {reference} prepared and not begun; a lost message leaves them so"
            fix = f"`lychd derive --all --queue --namespace {key} --as DERIVER` sends them again; nothing else does."
            yield notice(f"derivations of {key}", seen, fix)
        if expired or failed_:
            seen = f"{expired} attempts in {reference} expired and {failed_} failed"
            fix = f"`lychd derive --all --queue --retry --namespace {key} --as DERIVER` tries again; nothing else does."
            yield notice(f"attempts of {key}", seen, fix)
    for key, reference, rebuilding, counted, scanned, truth, both in _rows(_VECTORS):
        if rebuilding:
            fix = f"`lychd generation rebuild {reference} --namespace {key}` ends it."
            yield notice(f"vectors of {key} in {reference}", "being rebuilt; recall by meaning waits", fix)
            continue
        if {counted, scanned, both} != {truth}:
            seen = f"{truth} complete, {counted} counted, {scanned} searched, {both} of them rightly"
            fix = f"Run `lychd generation rebuild {reference} --namespace {key}`; nothing is embedded again."
            yield failed(f"vectors of {key} in {reference}", seen, fix)
    for key, reference, other in _rows(_COPIES) if deep else ():
        fix = f"Run `lychd generation rebuild {reference} --namespace {key}`; nothing is embedded again."
        yield failed(f"copies of {key} in {reference}", f"{other} are not those of their vectors", fix)
    yield ok("derivations", f"{complete} complete, as many searched as there are")


def _receipts(*, deep: bool) -> Iterator[Finding]:
    rows = Recall.objects.select_related("namespace").order_by("-created_at", "-id")
    looked, broken = 0, []
    bound = {namespace.id: receipts.Bindings(namespace) for namespace in Namespace.objects.all()}
    for row in rows.iterator(chunk_size=500) if deep else rows[:RECEIPTS_SAMPLED]:
        looked += 1
        if not receipts.is_intact(row, row.namespace.key, bound[row.namespace_id]):
            broken.append(str(row.id))
    if broken:
        yield failed("receipts", f"{len(broken)} of {looked} do not match: {_some(broken)}", "Compare with a backup.")
    else:
        yield ok("receipts", f"{looked} verified")


_TOMBSTONES: Final = """
    SELECT n.key, count(*), count(*) FILTER (WHERE t.text IS NOT NULL OR t.asserted_origin IS NOT NULL)
    FROM archive_note t JOIN archive_namespace n ON n.id = t.namespace_id
    WHERE t.state = 'revoked' GROUP BY n.key ORDER BY n.key
"""


def _tombstones() -> Iterator[Finding]:
    looked, fix = 0, "A constraint is missing: `lychd migrate` says which. Then revoke their text as the owner."
    for key, revoked, speaking in _rows(_TOMBSTONES):
        looked += revoked
        if speaking:
            yield failed(f"tombstones of {key}", f"{speaking} of {revoked} keep a text or an origin", fix)
    yield ok("tombstones", f"{looked} looked at")


def _recomputed(*, deep: bool) -> Iterator[Finding]:
    """Compute again what rows say of themselves; a trigger has seen to each when it was written."""
    limit = None if deep else NOTES_SAMPLED
    kinds = {
        "notes": recomputed.notes(limit),
        "requests": recomputed.requests(limit),
        "bindings": recomputed.bindings(),
    }
    for kind, rows in kinds.items():
        looked, broken = 0, []
        for name, whole in rows:
            looked += 1
            if not whole:
                broken.append(name)
        if broken:
            seen = f"{len(broken)} of {looked} are not what they say: {_some(broken)}"
            yield failed(kind, seen, "Compare with a backup.")
        else:
            yield ok(kind, f"{looked} computed again")
    if deep:
        strayed = recomputed.strayed()
        if strayed:
            seen = f"the events of {len(strayed)} notes do not lead to where they stand: {_some(strayed)}"
            yield failed("events", seen, "Compare with a backup.")
        else:
            yield ok("events", "each note stands where its events lead")


def _clock() -> Iterator[Finding]:
    ((theirs,),) = _rows("SELECT clock_timestamp()")
    apart = abs((theirs - datetime.now(UTC)).total_seconds())
    if apart > CLOCK_SECONDS:
        yield notice("clock", f"{apart:.0f} s apart from this machine's", "Let both machines follow one time server.")
    else:
        yield ok("clock", "together with this machine's")


def _tokens() -> Iterator[Finding]:
    now = transactions.moment()
    live = Token.objects.filter(revoked_at__isnull=True, expires_at__gt=now, principal__active=True)
    near = live.filter(expires_at__lte=now + timedelta(days=limits.TOKEN_ENDS_SOON_DAYS)).order_by("expires_at")
    ending = [
        f"{one.prefix} of {one.principal.subject} at {canonical.instant(one.expires_at)}"
        for one in near.select_related("principal")
        if one.ends_soon(now)
    ]
    if ending:
        fix = "`lychd token rotate TOKEN` makes a successor and lets the old one go on for an hour."
        yield notice("tokens", f"{len(ending)} end soon: {_some(ending)}", fix)
    else:
        yield ok("tokens", "none ends soon")


def _disk() -> Iterator[Finding]:
    dependencies.try_disk()
    free = dependencies.free_bytes()
    if free is None:
        yield ok("disk", "PostgreSQL can write")
    elif free < dependencies.LOW_BYTES:
        fix = "Make room on the disk of the data folder before it is full; every intake and every recall writes."
        yield notice("disk", f"PostgreSQL can write; {free // 1_000_000} MB are free", fix)
    else:
        yield ok("disk", f"PostgreSQL can write; {free / 1e9:.1f} GB are free")


def _broker() -> Iterator[Finding]:
    """Look at the broker, and where messages wait for somebody who takes them."""
    if not dependencies.needs_broker():
        return
    try:
        queue = dependencies.queue(BROKER_SECONDS)
    except dependencies.BrokerAway:
        if settings.REDIS_URL:
            yield failed("broker", "It does not answer.", "Start Redis, or correct REDIS_URL.")
        else:
            yield notice("broker", "The embedded broker is not running.", "`lychd worker` starts it.")
        return
    yield ok("broker", f"answers; {queue.waiting} messages wait")
    if queue.worker is False:
        yield failed("worker", f"{queue.waiting} messages wait and no worker answers.", "Start `lychd worker`.")
    elif queue.worker:
        yield ok("worker", "answers")


def _some(wrong: Sequence[str]) -> str:
    more = len(wrong) - _NAMED
    return "; ".join(wrong[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
