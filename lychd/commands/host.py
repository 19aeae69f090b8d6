"""The host's own commands: set up, migrate, serve, look after."""

import argparse
import getpass
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.contrib.auth.password_validation import validate_password
from django.core import checks
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Q

from archive import lexical, limits
from archive.bindings import Binding, TableBindings
from archive.models import Principal, Token
from archive.models.columns import CLOCK
from archive.operations import host
from archive.refusals import InvalidRequest
from archive.transactions import reading
from lychd import inventory, places, roles, upgrades
from lychd.commands.telling import Told, Unready, UsageError, pairs, remark, table, tell
from lychd.environment import written
from semantic import leases

PROFILE_VARIABLE = "LYCHD_ARCHIVE_PROFILE"
_NAMED = 5
# Without letters and digits that look alike, since somebody may type it from a screen.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


# --- migrations ------------------------------------------------------------------------------------------------------


def migrate(options: argparse.Namespace) -> Told:
    """Bring the tables up to date and apply the grants, as the owner."""
    if options.database not in connections:
        raise UsageError(f"there is no connection {options.database!r}; there are {', '.join(connections)}")
    before = upgrades.pending(options.database)
    upgrades.migrate(options.database, *(word for word in (options.app, options.migration) if word))
    left = upgrades.pending(options.database)
    applied = [name for name in before if name not in left]
    differing = [] if left or options.app else inventory.differences(options.database)
    uncut = upgrades.uncut(options.database) if not left else []
    lines = [*(f"applied  {name}" for name in applied), f"{len(applied)} applied, {len(left)} left"]
    lines += [line for one in differing for line in (f"differs  {one}", f"      -> {one.fix}")]
    if uncut:
        lines += [f"Recall waits in {len(uncut)} namespaces for words to be cut anew: lychd lexical rebuild --all"]
    told = {"applied": applied, "left": left, "differs": [str(one) for one in differing], "uncut": uncut}
    return Told(told, "\n".join(lines), 4 if any(one.grave for one in differing) else 0)


# --- init ------------------------------------------------------------------------------------------------------------


def init(options: argparse.Namespace) -> Told:
    """Make what a first day needs; what is there already is left as it is and said."""
    steps: list[tuple[str, str, str]] = []
    waiting = upgrades.pending("owner")
    upgrades.migrate("owner")
    steps.append(("tables", "done" if waiting else "exists", f"{len(waiting)} migrations applied"))
    steps.append(("profile", *switch_on(settings.LYCHD_STATE_DIR)))
    binding, configured = _first_binding(options)
    steps.append(("namespace", configured, f"{binding.namespace}, owned by {binding.owner}, {binding.policy_revision}"))
    user, password = _first_curator(options)
    steps.append(("curator", "exists" if password is None else "done", user.get_username()))
    given = give(user.get_username(), ("curator", "inspector", "recaller", "operator"), binding, user_id=user.pk)
    given += give(options.agent, ("writer", "recaller"), binding)
    steps.append(
        ("grants", "done" if given else "exists", f"{given} given to {user.get_username()} and {options.agent}")
    )
    secret = _first_token(options.agent, binding.namespace)
    steps.append(("token", "exists" if secret is None else "done", f"for {options.agent}"))
    document: dict[str, Any] = {
        "steps": [{"step": step, "outcome": outcome, "what": what} for step, outcome, what in steps],
        "namespace": binding.namespace,
        "curator": user.get_username(),
        "password": None if options.ask_password else password,
        "agent": options.agent,
        "token": secret,
    }
    return Told(document, _first_day(steps, document))


def _first_day(steps: list[tuple[str, str, str]], told: dict[str, Any]) -> str:
    lines = [table(("step", "outcome", "what"), steps, empty="")]
    shown = [(name, told[name]) for name in ("password", "token") if told[name] is not None]
    if shown:
        rows = [("curator", told["curator"])] if told["password"] else []
        lines += ["", "Shown once, kept nowhere:", pairs([*rows, *shown])]
    lines += [
        "",
        "next:",
        "  lychd serve",
        f"  lychd ingest FOLDER --as {told['agent']}",
        f"  lychd notes --as {told['curator']}",
    ]
    return "\n".join(lines)


def switch_on(state: Path) -> tuple[str, str]:
    """Write the profile into the instance's own file, where everybody can see it."""
    places.make_state(state)
    file = state / "environment"
    if os.environ.get(PROFILE_VARIABLE, limits.PROFILE) != limits.PROFILE:
        return "differs", f"the environment says {os.environ[PROFILE_VARIABLE]} and wins; unset {PROFILE_VARIABLE}"
    if written(file).get(PROFILE_VARIABLE) == limits.PROFILE:
        return "exists", f"{limits.PROFILE} in {file}"
    kept = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [line for line in kept if line.partition("=")[0].strip() != PROFILE_VARIABLE]
    draft = file.with_name(f"environment.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text("\n".join([*kept, f"{PROFILE_VARIABLE}={limits.PROFILE}", ""]), encoding="utf-8")
    draft.rename(file)
    return "done", f"{limits.PROFILE} written to {file}"


def _first_binding(options: argparse.Namespace) -> tuple[Binding, str]:
    with reading():
        # Not through the configured source: that one asks for a profile, which this process may not have yet.
        found = TableBindings().find(options.namespace)
    if found is not None:
        return found, "exists"
    made = host.configure_namespace(
        options.namespace, owner=options.owner, policy_revision=options.policy, by=host.host_actor()
    )
    return made, "done"


def _first_curator(options: argparse.Namespace) -> tuple[AbstractUser, str | None]:
    users = get_user_model().objects
    with reading():
        user = users.filter(username=options.curator).first()
    if user is not None:
        return user, None
    password = _asked_password() if options.ask_password else make_password()
    with reading():
        return users.create_user(options.curator, password=password, is_staff=True), password


def make_password() -> str:
    """Make a password that is typed without mistakes: twenty letters and digits in groups of five, 99 bits."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def _asked_password() -> str:
    if not sys.stdin.isatty():
        raise UsageError("--ask-password needs a terminal; without it a password is made and shown once")
    password = getpass.getpass("Password of the curator: ")
    if password != getpass.getpass("Once more: "):
        raise UsageError("the two passwords differ")
    try:
        validate_password(password)
    except ValidationError as error:
        raise UsageError(" ".join(error.messages)) from None
    return password


def give(subject: str, names: tuple[str, ...], binding: Binding, *, user_id: int | None = None) -> int:
    """Make a principal and give it roles; returns how many grants are new."""
    with reading():
        known = Principal.objects.filter(subject=subject).values_list("user_id", flat=True).first()
    if known is None or (user_id is not None and known != user_id):
        host.map_principal(subject, user_id=user_id)
    return len(host.grant(subject, binding, host.actions_of(names), by=host.host_actor()))


def _first_token(agent: str, namespace: str) -> str | None:
    live = Token.objects.filter(principal__subject=agent, revoked_at__isnull=True, expires_at__gt=CLOCK)
    with reading():
        if live.filter(Q(namespaces__isnull=True) | Q(namespaces__contains=[namespace])).exists():
            return None
    try:
        return host.issue_token(agent, by=host.host_actor(), namespaces=[namespace], name="first").secret
    except InvalidRequest:
        # Somebody disabled the agent on purpose; a second `init` does not undo that.
        return None


# --- serve -----------------------------------------------------------------------------------------------------------


def serve(options: argparse.Namespace) -> None:
    """Serve until Ctrl-C, from a database whose fences are all up."""
    from lychd import serving

    workers = settings.LYCHD_WEB_PROCESSES if options.workers is None else options.workers
    if not 1 <= workers <= 64:
        raise UsageError("--workers takes 1 to 64")
    if workers > 1 and leases.in_memory():
        raise UsageError(
            f"leases are counted in the memory of one process, and {workers} are to answer;"
            " leave LYCHD_COORDINATION unset, or serve with one"
        )
    require_fences()
    if settings.LYCHD_ARCHIVE is None:
        remark(f"The archive is switched off: `lychd init` switches it on, or set {PROFILE_VARIABLE}.")
    door = serving.open_door(options.host, options.port)
    if door.moved:
        remark(f"Port {serving.DEFAULT_PORT} is taken, so this is port {door.port}.")
    connections.close_all()

    def ready() -> None:
        address = f"{door.address}{settings.LYCHD_PATH_PREFIX}"
        document = {"address": address, "pid": os.getpid(), "workers": workers}
        tell(Told(document, f"LychD Archive is at {address} (Ctrl-C ends it)"), as_json=options.as_json)

    with ending_by_signal():
        serving.serve(door, workers=workers, ready=ready)


@contextmanager
def ending_by_signal() -> Iterator[None]:
    """Take Ctrl-C and SIGTERM for what they are to a server: its end, and no failure."""
    try:
        yield
    except KeyboardInterrupt:
        return
    except SystemExit as stopped:
        if stopped.code != 128 + signal.SIGTERM:
            raise


def require_fences() -> None:
    """Refuse to serve from a database that is not migrated or whose fences are not all up."""
    waiting = upgrades.pending(DEFAULT_DB_ALIAS)
    if waiting:
        raise Unready(f"{len(waiting)} migrations are not applied. Run `lychd init`, or `lychd migrate`.")
    for message in roles.check_database(databases=[DEFAULT_DB_ALIAS]):
        if message.level >= checks.ERROR:
            raise Unready(f"{message.msg} {message.hint} `lychd doctor` checks everything.")
        remark(f"warning: {message.msg} {message.hint}")
    warn_of_moved_words()


def warn_of_moved_words() -> None:
    """Say at a start that PostgreSQL cuts words differently since an upgrade: recall would miss without a word."""
    moved = lexical.moved()
    if moved:
        some = ", ".join(moved[:_NAMED]) + (f" and {len(moved) - _NAMED} more" if len(moved) > _NAMED else "")
        remark(
            f"warning: PostgreSQL's lexer is not the one that cut the words of {some}; recall may miss notes."
            " Run `lychd lexical rebuild --namespace KEY` for each."
        )


# --- doctor, metrics -------------------------------------------------------------------------------------------------


def doctor(options: argparse.Namespace) -> Told:
    """Check everything; exit 4 where something is wrong."""
    from lychd.doctor import Verdict, examine

    found = examine(deep=options.deep)
    wrong = [one for one in found if one.verdict is Verdict.FAILED]
    marks = {Verdict.OK: "ok", Verdict.NOTICE: "note", Verdict.FAILED: "WRONG"}
    wide = max(len(one.check) for one in found)
    lines = []
    for one in found:
        lines.append(f"{marks[one.verdict]:<5}  {one.check:<{wide}}  {one.seen}")
        lines += [f"{'':<5}  {'':<{wide}}  -> {one.fix}"] if one.fix is not None else []
    lines += ["", f"{len(wrong)} of {len(found)} checks failed." if wrong else f"All {len(found)} checks passed."]
    document = {"passed": not wrong, "findings": [one.as_json() for one in found]}
    return Told(document, "\n".join(lines), 4 if wrong else 0)


def metrics(options: argparse.Namespace) -> Told:
    """Print the figures."""
    from lychd.metrics import exposition, figures

    if options.as_json:
        return Told({"metrics": figures()}, "")
    return Told({}, exposition())
