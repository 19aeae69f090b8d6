"""Every way into the service and who may take it: the one source of the access tests.

A row is an entrance, a column a role, a sign what the role meets in a namespace of its own that stands as configured:

    +   allowed
    -   refused: `authority_refused`, the same whatever exists
    ~   may look, and is refused the rest: `authority_refused`
    ?   who are you? API 401 `unauthenticated`, pages lead to the sign-in, commands ask for --as
    0   no such address, for anybody

In the other states of a namespace (`STATES`) a sign becomes what `expected` says. The last two columns of a row are
what an allowed role meets while the namespace is retained under another policy revision than the configured one, and
while nothing was ever taken in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

ROLES: Final = {
    "an": "anonymous",
    "st": "stranger",  # signed in, and no principal stands for the user
    "ch": "charlie",  # a principal, and no grant
    "ex": "expired",  # every grant has run out
    "wi": "withdrawn",  # every grant was taken back
    "in": "inactive",  # every grant, and the principal is switched off
    "ne": "neighbour",  # every grant, in another namespace
    "ou": "outdated",  # every grant, under an earlier policy revision
    "ro": "root",  # a superuser and staff of the framework, and no grant
    "wr": "writer",
    "re": "recaller",
    "cu": "curator",
    "ip": "inspector",
    "op": "operator",
    "de": "deriver",
}
GRANTED: Final = ("writer", "recaller", "curator", "inspector", "operator", "deriver")
"""Those who hold the role of their name in every state of a namespace, and nothing in another's."""

STATES: Final = {
    "own": "the namespace of the roles, as configured",
    "changed": "retained under another policy revision than the configured one",
    "others": "another's: the neighbour alone holds grants in it",
    "disabled": "retained, and no longer served",
    "absent": "configured, and nothing was ever taken in",
    "unknown": "never configured",
}

API: Final = """
                                                                                 no right whatever          | roles
address                                                    action                an st ch ex wi in ne ou ro | wr re cu ip op de | changed          absent

GET  api/v1/schema                                         .                     ?  +  +  +  +  ?  +  +  +  | +  +  +  +  +  +  | .                .
GET  api/v1/docs                                           .                     ?  +  +  +  +  ?  +  +  +  | +  +  +  +  +  +  | .                .
GET  api/v1/configuration                                  discover_configuration ?  -  -  -  -  ?  +  -  -  | -  -  -  +  +  -  | .                .
GET  api/v1/configuration?namespace=<key:ns>               discover_configuration ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  -  | +                +
GET  api/v1/interface-projection?namespace=<key:ns>        inspect_interface     ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  -  | +                +
GET  api/v1/ns/<str:ns>/notes                              inspect_metadata      ?  -  -  -  -  ?  -  -  -  | -  -  +  +  +  -  | binding_mismatch +
POST api/v1/ns/<str:ns>/notes                              intake                ?  -  -  -  -  ?  -  -  -  | +  -  -  -  -  -  | binding_mismatch +
POST api/v1/ns/<str:ns>/notes/batch                        intake                ?  -  -  -  -  ?  -  -  -  | +  -  -  -  -  -  | binding_mismatch +
POST api/v1/ns/<str:ns>/transitions                        promote               ?  -  -  -  -  ?  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
GET  api/v1/ns/<str:ns>/notes/<str:note_id>                inspect_metadata      ?  -  -  -  -  ?  -  -  -  | -  -  +  +  +  -  | binding_mismatch record_absent
GET  api/v1/ns/<str:ns>/notes/<str:note_id>/text           review                ?  -  -  -  -  ?  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
GET  api/v1/ns/<str:ns>/notes/<str:note_id>/events         inspect_metadata      ?  -  -  -  -  ?  -  -  -  | -  -  +  +  +  -  | binding_mismatch record_absent
POST api/v1/ns/<str:ns>/notes/<str:note_id>/promote        promote               ?  -  -  -  -  ?  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
POST api/v1/ns/<str:ns>/notes/<str:note_id>/archive        archive               ?  -  -  -  -  ?  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
POST api/v1/ns/<str:ns>/notes/<str:note_id>/revoke         revoke                ?  -  -  -  -  ?  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
POST api/v1/ns/<str:ns>/notes/<str:note_id>/flags          flag                  ?  -  -  -  -  ?  -  -  -  | +  +  -  -  -  -  | binding_mismatch namespace_absent
GET  api/v1/ns/<str:ns>/intakes                            list_own_intakes      ?  -  -  -  -  ?  -  -  -  | +  -  -  -  -  -  | binding_mismatch +
GET  api/v1/ns/<str:ns>/intakes/<str:request_id>           inspect_metadata      ?  -  -  -  -  ?  -  -  -  | -  -  +  +  +  -  | binding_mismatch record_absent
GET  api/v1/ns/<str:ns>/events                             inspect_metadata      ?  -  -  -  -  ?  -  -  -  | -  -  +  +  +  -  | binding_mismatch +
POST api/v1/ns/<str:ns>/recalls                            recall                ?  -  -  -  -  ?  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
POST api/v1/ns/<str:ns>/recalls/<str:request_id>/resolve   resolve               ?  -  -  -  -  ?  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
GET  api/v1/ns/<str:ns>/receipts/<str:request_id>          inspect_receipt       ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  -  | binding_mismatch receipt_absent
GET  api/v1/generation-configuration?namespace=<key:ns>    discover_generation   ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  +  | +                +
GET  api/v1/ns/<str:ns>/generations                        inspect_derivation    ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  +  | binding_mismatch +
GET  api/v1/ns/<str:ns>/generations/<path:reference>       inspect_derivation    ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  +  | binding_mismatch generation_absent
GET  api/v1/ns/<str:ns>/derivations                        inspect_derivation    ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  +  | binding_mismatch +
POST api/v1/ns/<str:ns>/derivations                        prepare_derivation    ?  -  -  -  -  ?  -  -  -  | -  -  -  -  -  +  | binding_mismatch namespace_absent
GET  api/v1/ns/<str:ns>/derivations/<str:derivation_id>    inspect_derivation    ?  -  -  -  -  ?  -  -  -  | -  -  -  +  +  +  | binding_mismatch derivation_absent
POST api/v1/ns/<str:ns>/derivations/<str:derivation_id>/attempts execute_derivation    ?  -  -  -  -  ?  -  -  -  | -  -  -  -  -  +  | binding_mismatch derivation_absent
POST api/v1/ns/<str:ns>/semantic-recalls                   semantic_recall       ?  -  -  -  -  ?  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
POST api/v1/ns/<str:ns>/semantic-recalls/<str:request_id>/resolve semantic_resolve      ?  -  -  -  -  ?  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
GET  ^api(?:/(?P<rest>.*))?$                               .                     0  0  0  0  0  0  0  0  0  | 0  0  0  0  0  0  | .                .
"""  # noqa: E501
"""Programs, with a token; `st` and `ro` by their session."""

PAGES: Final = """
                                                                                 no right whatever          | roles
address                                                    action                an st ch ex wi in ne ou ro | wr re cu ip op de | changed          absent

GET  healthz                                               .                     +  +  +  +  +  +  +  +  +  | +  +  +  +  +  +  | .                .
GET  readyz                                                .                     +  +  +  +  +  +  +  +  +  | +  +  +  +  +  +  | .                .
GET  sign-in                                               .                     +  +  +  +  +  +  +  +  +  | +  +  +  +  +  +  | .                .
POST sign-in                                               .                     +  +  +  +  +  +  +  +  +  | +  +  +  +  +  +  | .                .
POST sign-out                                              .                     ?  ?  ?  ?  ?  ?  ?  ?  ?  | ?  ?  ?  ?  ?  ?  | .                .
GET  /                                                     .                     ?  -  -  -  -  -  +  +  -  | +  +  +  +  +  +  | .                .
GET  namespaces                                            .                     ?  -  -  -  -  -  +  +  -  | +  +  +  +  +  +  | .                .
GET  ns/<key:ns>                                           inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch +
GET  ns/<key:ns>/review                                    review                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch +
POST ns/<key:ns>/review/preview                            review                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch +
POST ns/<key:ns>/transitions                               promote               ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
GET  ns/<key:ns>/notes                                     inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch +
GET  ns/<key:ns>/notes/<uuid:note_id>                      inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch record_absent
GET  ns/<key:ns>/notes/<uuid:note_id>/revocation           revoke                ?  -  -  -  -  -  -  -  -  | -  -  +  ~  ~  -  | binding_mismatch record_absent
POST ns/<key:ns>/notes/<uuid:note_id>/promote              promote               ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
POST ns/<key:ns>/notes/<uuid:note_id>/archive              archive               ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
POST ns/<key:ns>/notes/<uuid:note_id>/revoke               revoke                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
POST ns/<key:ns>/notes/<uuid:note_id>/later                review                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
GET  ns/<key:ns>/source                                    inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch record_absent
GET  ns/<key:ns>/search                                    review                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch +
POST ns/<key:ns>/search                                    review                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch +
POST ns/<key:ns>/intakes                                   intake                ?  -  -  -  -  -  -  -  -  | +  -  -  -  -  -  | binding_mismatch +
GET  ns/<key:ns>/receipts                                  inspect_receipt       ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  -  | binding_mismatch +
GET  ns/<key:ns>/receipts/<key:request_id>                 inspect_receipt       ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  -  | binding_mismatch receipt_absent
GET  ns/<key:ns>/receipts/<key:request_id>/file            inspect_receipt       ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  -  | binding_mismatch receipt_absent
GET  ns/<key:ns>/configuration                             discover_configuration ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  -  | +                +
GET  ns/<key:ns>/events                                    inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch +
GET  ns/<key:ns>/find                                      inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  +  | +                +
POST ns/<key:ns>/find                                      inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  +  | binding_mismatch +
GET  ns/<key:ns>/generations                               inspect_derivation    ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  +  | binding_mismatch +
GET  ns/<key:ns>/generations/numbers                       inspect_derivation    ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  +  | binding_mismatch +
GET  ns/<key:ns>/people                                    grant                 ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
POST ns/<key:ns>/people/grant                              grant                 ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
POST ns/<key:ns>/people/withdraw                           grant                 ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
POST ns/<key:ns>/people/token                              grant                 ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
POST ns/<key:ns>/people/token-end                          grant                 ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
GET  ns/<key:ns>/settings                                  configure_namespace   ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
POST ns/<key:ns>/settings/change                           configure_namespace   ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
POST ns/<key:ns>/settings/disable                          configure_namespace   ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                +
GET  ^(?!api(?:/|$)|admin$|static/|media/)(?P<address>.*)$ .                     0  0  0  0  0  0  0  0  0  | 0  0  0  0  0  0  | .                .
"""  # noqa: E501
"""People, by their session; and the two probes."""

COMMANDS: Final = """
                                                                                 no right whatever          | roles
command                                                    action                an st ch ex wi in ne ou ro | wr re cu ip op de | changed          absent

     ingest                                                intake                ?  -  -  -  -  -  -  -  -  | +  -  -  -  -  -  | binding_mismatch +
     notes                                                 inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch +
     notes --mine                                          list_own_intakes      ?  -  -  -  -  -  -  -  -  | +  -  -  -  -  -  | binding_mismatch +
     note                                                  inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch record_absent
     review                                                review                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
     promote                                               promote               ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
     archive                                               archive               ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
     revoke                                                revoke                ?  -  -  -  -  -  -  -  -  | -  -  +  -  -  -  | binding_mismatch namespace_absent
     events                                                inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch +
     events NOTE                                           inspect_metadata      ?  -  -  -  -  -  -  -  -  | -  -  +  +  +  -  | binding_mismatch record_absent
     recall                                                recall                ?  -  -  -  -  -  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
     recall --text                                         resolve               ?  -  -  -  -  -  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
     resolve                                               resolve               ?  -  -  -  -  -  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
     receipt show                                          inspect_receipt       ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  -  | binding_mismatch receipt_absent
     namespace migrate                                     migrate_binding       ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | +                namespace_absent
     interface                                             inspect_interface     ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  -  | +                +
     generation discover                                   discover_generation   ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  +  | +                +
     generation register                                   register_generation   ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | binding_mismatch namespace_absent
     generation retire                                     retire_generation     ?  -  -  -  -  -  -  -  -  | -  -  -  -  +  -  | binding_mismatch namespace_absent
     generation status                                     inspect_derivation    ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  +  | binding_mismatch +
     derive                                                execute_derivation    ?  -  -  -  -  -  -  -  -  | -  -  -  -  -  +  | binding_mismatch namespace_absent
     derivation show                                       inspect_derivation    ?  -  -  -  -  -  -  -  -  | -  -  -  +  +  +  | binding_mismatch derivation_absent
     semantic recall                                       semantic_recall       ?  -  -  -  -  -  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
     semantic resolve                                      semantic_resolve      ?  -  -  -  -  -  -  -  -  | -  +  -  -  -  -  | binding_mismatch namespace_absent
"""  # noqa: E501
"""Whoever runs them names a principal; `st` names one that there is not."""

ADMIN: Final = """
                                                                                 no right whatever          | roles
table                                                      action                an st ch ex wi in ne ou ro | wr re cu ip op de | changed          absent

GET  admin/                                                .                     ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  +  | .                .
GET  admin/archive/namespace/                              inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/note/                                   inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/source/                                 inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/lifecycleevent/                         inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/intakerequest/                          inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/flag/                                   inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/recall/                                 inspect_receipt       ?  -  -  -  -  -  +  -  -  | -  -  -  +  +  -  | .                .
GET  admin/semantic/generation/                            inspect_derivation    ?  -  -  -  -  -  +  -  -  | -  -  -  +  +  +  | .                .
GET  admin/semantic/derivation/                            inspect_derivation    ?  -  -  -  -  -  +  -  -  | -  -  -  +  +  +  | .                .
GET  admin/archive/bindingmigration/                       inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/memoryspace/                            inspect_metadata      ?  -  -  -  -  -  +  -  -  | -  -  +  +  +  -  | .                .
GET  admin/archive/configuredbinding/                      discover_configuration ?  -  -  -  -  -  +  -  -  | -  -  -  +  +  -  | .                .
GET  admin/archive/configuredbindinghistory/               discover_configuration ?  -  -  -  -  -  +  -  -  | -  -  -  +  +  -  | .                .
GET  admin/archive/grant/                                  grant                 ?  -  -  -  -  -  +  -  -  | -  -  -  -  +  -  | .                .
GET  admin/archive/principal/                              grant                 ?  -  -  -  -  -  +  -  -  | -  -  -  -  +  -  | .                .
GET  admin/archive/token/                                  grant                 ?  -  -  -  -  -  +  -  -  | -  -  -  -  +  -  | .                .
GET  admin/archive/role/                                   grant                 ?  -  -  -  -  -  +  -  -  | -  -  -  -  +  -  | .                .
"""  # noqa: E501
"""Tables to look at, by session. A line is the list, a record at `<path:object_id>/change/`, and forms sent there.

A record is one of a namespace of the role's own; no form is taken from anybody.
"""

TASKS: Final = """
                                                                                 no right whatever          | roles
task                                                       action                an st ch ex wi in ne ou ro | wr re cu ip op de | changed          absent

     semantic.run_derivation_attempt                       execute_derivation    -  -  -  -  -  -  -  -  -  | -  -  -  -  -  +  | binding_mismatch namespace_absent
"""  # noqa: E501
"""A message names the subject who asked; `an` and `st` name one that there is not."""

HOST: Final = frozenset(
    {
        "bench",
        "demo",
        "doctor",
        "evaluate",
        "generation describe",
        "generation rebuild",
        "grant give",
        "grant list",
        "grant withdraw",
        "init",
        "lexical rebuild",
        "metrics",
        "migrate",
        "namespace configure",
        "namespace disable",
        "namespace list",
        "principal add",
        "principal disable",
        "principal enable",
        "principal list",
        "receipt verify",
        "serve",
        "token create",
        "token list",
        "token revoke",
        "token rotate",
        "worker",
    }
)
"""Commands of the host itself: who can run them holds the operator's credentials, and no principal is named (5.15)."""

BUILDING: Final = frozenset({"errors_page", "openapi"})
"""Commands that write pages of the documentation from the code alone."""

FRAMEWORK: Final = frozenset(
    {
        "django.core",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.staticfiles",
        "drf_spectacular",
        "pgtrigger",
        "rest_framework",
    }
)
"""Apps whose commands are the host's own, as a shell is."""

UNMOUNTED: Final = frozenset({"auth.Group", "auth.User"})
"""What the framework registers by itself with its own admin site. That site is mounted nowhere."""


@dataclass(frozen=True)
class Entrance:
    """One row."""

    door: str
    method: str
    address: str
    action: str | None
    signs: dict[str, str]
    changed: str
    absent: str

    def __str__(self) -> str:
        return f"{self.method} {self.address}".strip()

    @property
    def in_namespace(self) -> bool:
        """Whether it leads into one namespace."""
        return self.action is not None and self.changed != "."

    @property
    def reads(self) -> bool:
        """Whether it changes nothing even where it is allowed."""
        return self.method == "GET" or self.address in _READING

    def expected(self, role: str, state: str) -> str:
        """What this role meets here: a sign, or the code of another refusal."""
        sign = self.signs[role]
        if state == "own" or not self.in_namespace or sign == "?":
            return "-" if sign == "~" else sign
        if state == "unknown":
            return "-"
        if state == "others":
            return "+" if role == "neighbour" else "-"
        if state == "disabled":
            # To whoever holds some current grant there, whatever for (5.13).
            return "namespace_not_served" if role in (*GRANTED, "outdated") else "-"
        met = self.changed if state == "changed" else self.absent
        return met if sign in ("+", "~") else sign


_READING: Final = frozenset(
    {"notes", "notes --mine", "note", "review", "events", "events NOTE", "resolve", "receipt show"}
    | {
        "derivation show",
        "generation discover",
        "interface",
        "generation register",
        "generation status",
        "semantic resolve",
    }
    | {
        "api/v1/ns/<str:ns>/recalls/<str:request_id>/resolve",
        "ns/<key:ns>/notes/<uuid:note_id>/later",
        # The worker writes, when the message comes.
        "api/v1/ns/<str:ns>/derivations/<str:derivation_id>/attempts",
        "api/v1/ns/<str:ns>/semantic-recalls/<str:request_id>/resolve",
        "ns/<key:ns>/find",
        "ns/<key:ns>/review/preview",
        "ns/<key:ns>/search",
        # What would be done is shown; it is another form that does it.
        "ns/<key:ns>/people/token",
        "ns/<key:ns>/people/token-end",
        "ns/<key:ns>/settings/change",
        "ns/<key:ns>/settings/disable",
    }
)
_ROW: Final = re.compile(
    r"(?P<method>[A-Z]+|) +(?P<address>\S+(?: \S+)*?) +(?P<action>[a-z_]+|\.)"
    r" +(?P<signs>(?:[-+~?0] +){9}\| (?:[-+~?0] +){6})\| (?P<changed>\S+) +(?P<absent>\S+)"
)


def _read(door: str, grid: str) -> tuple[Entrance, ...]:
    found = []
    for line in grid.splitlines()[4:]:
        row = _ROW.fullmatch(line)
        assert row is not None, f"no row: {line!r}"
        signs = dict(zip(ROLES.values(), row["signs"].replace("|", "").split(), strict=True))
        action = None if row["action"] == "." else row["action"]
        address = "" if row["address"] == "/" else row["address"]
        found.append(Entrance(door, row["method"], address, action, signs, row["changed"], row["absent"]))
    assert len(set(map(str, found))) == len(found), "a row stands twice"
    return tuple(found)


def _looked_at(lists: tuple[Entrance, ...]) -> Iterator[Entrance]:
    """The list and the record of a table, and the forms that somebody might send there."""
    for one in lists:
        for address in (one.address, *([f"{one.address}<path:object_id>/change/"] if one.action else [])):
            yield replace(one, address=address)
            refused = {role: "?" if sign == "?" else "-" for role, sign in one.signs.items()}
            yield replace(one, address=address, method="POST", signs=refused)


ENTRANCES: Final = (
    *_read("api", API),
    *_read("page", PAGES),
    *_looked_at(_read("admin", ADMIN)),
    *_read("command", COMMANDS),
    *_read("task", TASKS),
)


def cells() -> int:
    """How many cells the table has, states of a namespace included."""
    return sum(len(ROLES) * (len(STATES) if entrance.in_namespace else 1) for entrance in ENTRANCES)
