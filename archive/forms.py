"""The closed form of a receipt, declared once for Python and for PostgreSQL (specification 5.6, R-L-102, R-L-141).

Whoever can insert a row can seal it over anything that is JSON. What has another form is no receipt of this archive: no
free words, no field more, no note twice, no score that is none, no selection that its budgets would not have made. The
database refuses to write such a row, and whoever opens one is told that it is not whole.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Protocol

from archive import canonical, limits
from archive.seals import DIGEST_DOMAIN, LEXICAL_SCHEMA

Path = tuple[str, ...]


class Shape(Protocol):
    """What a JSON value may be: asked of a Python value, and written as SQL about a jsonb expression."""

    def holds(self, value: Any) -> bool:
        """Say whether a value has this shape."""

    def sql(self, at: str) -> str:
        """Write the same question about the jsonb that the expression `at` gives; true, false or null."""

    def canonical_sql(self, at: str) -> str:
        """Write the text that `canonical.encode` makes of it; jsonb escapes a string as that does."""


class _Leaf:
    def canonical_sql(self, at: str) -> str:
        return f"({at})::text"


@dataclass(frozen=True)
class Text(_Leaf):
    """A string that has this form from end to end."""

    pattern: str

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and re.fullmatch(self.pattern, value) is not None

    def sql(self, at: str) -> str:
        return f"(jsonb_typeof({at}) = 'string' AND {at} #>> '{{}}' ~ '^(?:{self.pattern})\\Z')"


@dataclass(frozen=True)
class Words(_Leaf):
    """Any string of at most so many characters."""

    most: int

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and len(value) <= self.most

    def sql(self, at: str) -> str:
        return f"(jsonb_typeof({at}) = 'string' AND length({at} #>> '{{}}') <= {self.most})"


class OneOf(_Leaf):
    """One of a closed list of strings; with none of them it is JSON's null."""

    def __init__(self, *values: str) -> None:
        self.values = values

    def holds(self, value: Any) -> bool:
        return value in self.values if isinstance(value, str) else value is None and not self.values

    def sql(self, at: str) -> str:
        listed = ", ".join(f"'{value}'" for value in self.values)
        return f"({at} #>> '{{}}' IN ({listed}))" if listed else f"(jsonb_typeof({at}) = 'null')"


@dataclass(frozen=True)
class Whole(_Leaf):
    """A whole number within bounds; JSON's true is none."""

    least: int
    most: int = limits.INTEGER_MAX

    def holds(self, value: Any) -> bool:
        return type(value) is int and self.least <= value <= self.most

    def sql(self, at: str) -> str:
        return (
            f"(CASE WHEN ({at})::text ~ '^(0|-?[1-9][0-9]{{0,15}})\\Z'"
            f" THEN ({at})::text::bigint BETWEEN {self.least} AND {self.most} ELSE false END)"
        )


@dataclass(frozen=True)
class Real(_Leaf):
    """A finite real as `canonical.real` writes it, within bounds."""

    least: float = -math.inf
    most: float = math.inf

    def holds(self, value: Any) -> bool:
        try:
            number = canonical.read_real(value) if isinstance(value, str) else math.nan
        except ValueError:
            return False
        return math.isfinite(number) and self.least <= number <= self.most and canonical.real(number) == value

    def sql(self, at: str) -> str:
        # The bits of two numbers of one sign are in the order of their sizes.
        said = f"({at} #>> '{{}}') COLLATE \"C\""
        tests = [f"{at} #>> '{{}}' ~ '^f64:(?![7f]ff|8{0:015d})[0-9a-f]{{16}}\\Z'"]
        if self.least >= 0:
            tests.append(f"{said} BETWEEN '{canonical.real(self.least)}' AND 'f64:8'")
        elif math.isfinite(self.least):
            tests.append(f"({said} < 'f64:8' OR {said} <= '{canonical.real(self.least)}')")
        if math.isfinite(self.most):
            tests.append(f"({said} > 'f64:8' OR {said} <= '{canonical.real(self.most)}')")
        return f"({' AND '.join(tests)})"


class Moment(Text):
    """A time as `canonical.instant` writes it."""

    def __init__(self) -> None:
        super().__init__("[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\\.[0-9]{6}Z")

    def holds(self, value: Any) -> bool:
        try:
            return super().holds(value) and canonical.instant(datetime.fromisoformat(value)) == value
        except ValueError:
            return False


@dataclass(frozen=True)
class Record:
    """An object with exactly these fields."""

    fields: Mapping[str, Shape]

    def holds(self, value: Any) -> bool:
        return (
            isinstance(value, dict)
            and value.keys() == self.fields.keys()
            and all(shape.holds(value[name]) for name, shape in self.fields.items())
        )

    def sql(self, at: str) -> str:
        names = ", ".join(f"'{name}'" for name in self.fields)
        each = " AND ".join(shape.sql(_field(at, name)) for name, shape in self.fields.items())
        return (
            f"(CASE WHEN jsonb_typeof({at}) = 'object' THEN ({at} ?& ARRAY[{names}]"
            f" AND ({at} - ARRAY[{names}]) = '{{}}'::jsonb AND {each}) ELSE false END)"
        )

    def canonical_sql(self, at: str, *, without: str = "") -> str:
        return canonical.sql_object(
            {name: shape.canonical_sql(_field(at, name)) for name, shape in self.fields.items() if name != without}
        )


@dataclass(frozen=True)
class Optional:
    """A value of one shape, or JSON's null."""

    item: Shape

    def holds(self, value: Any) -> bool:
        return value is None or self.item.holds(value)

    def sql(self, at: str) -> str:
        return f"(CASE WHEN jsonb_typeof({at}) = 'null' THEN true ELSE {self.item.sql(at)} END)"

    def canonical_sql(self, at: str) -> str:
        return f"(CASE WHEN jsonb_typeof({at}) = 'null' THEN 'null' ELSE {self.item.canonical_sql(at)} END)"


def _field(at: str, name: str) -> str:
    return f"({at} -> '{name}')"


@dataclass(frozen=True)
class Several:
    """A list of at most so many of one shape."""

    item: Shape
    most: int

    def holds(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) <= self.most and all(map(self.item.holds, value))

    def sql(self, at: str) -> str:
        return (
            f"(CASE WHEN jsonb_typeof({at}) = 'array' THEN jsonb_array_length({at}) <= {self.most} AND NOT EXISTS ("
            f"SELECT FROM jsonb_array_elements({at}) AS one (item)"
            f" WHERE NOT coalesce({self.item.sql('one.item')}, false)) ELSE false END)"
        )

    def canonical_sql(self, at: str) -> str:
        return (
            f"('[' || coalesce((SELECT string_agg({self.item.canonical_sql('one.item')}, ',' ORDER BY one.place)"
            f" FROM jsonb_array_elements({at}) WITH ORDINALITY AS one (item, place)), '') || ']')"
        )


DIGEST: Final = Text("[0-9a-f]{64}")
IDENTITY: Final = Text("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ADDRESS_KEY: Final = Text(limits.ADDRESS_KEY_PATTERN)
IDENTIFIER: Final = Text(limits.IDENTIFIER_PATTERN)
VERSION: Final = Whole(1, 2**31 - 1)
COUNT: Final = Whole(0)
_CHARS: Final = Whole(1, limits.NOTE_TEXT_MAX_CHARS)
_RANK: Final = Whole(1, limits.TOP_K_MAX)
_OMITTED: Final = Record(
    {"rank": _RANK, "note_id": IDENTITY, "char_count": _CHARS, "score": Real(), "reason": OneOf("char_budget")}
)
_SELECTED: Final[Mapping[str, Shape]] = {
    "rank": _RANK,
    "note_id": IDENTITY,
    "source_key": IDENTIFIER,
    "source_revision": IDENTIFIER,
    "text_digest": DIGEST,
    "lifecycle_version": VERSION,
    "projection_digest": DIGEST,
    "char_count": _CHARS,
    "score": Real(),
}
_BUDGETS: Final[Mapping[str, Shape]] = {
    "top_k": Whole(limits.TOP_K_MIN, limits.TOP_K_MAX),
    "char_budget": Whole(limits.CHAR_BUDGET_MIN, limits.CHAR_BUDGET_MAX),
}
# What the request of every receipt said, and where the receipt tells it.
_ASKED: Final[Mapping[str, Path]] = {
    **{
        name: (name,)
        for name in ("profile", "namespace", "owner", "policy_revision", "subject", "purpose", "request_id", "policy")
    },
    "query_digest": ("query_digest",),
    "top_k": ("budgets", "top_k"),
    "char_budget": ("budgets", "char_budget"),
}


@dataclass(frozen=True)
class ReceiptForm:
    """One schema: what it says beside what every receipt says, and the request that follows from it.

    `selected` is said of a selected note more, `budgets` beside the two that all have; `least` is where the lowest
    score stands that a note of it may have.
    """

    schema: int
    policies: Sequence[str]
    request_domain: str
    asked: Mapping[str, Path]
    account: Mapping[str, Shape]
    least: Path
    budgets: Mapping[str, Shape]
    selected: Mapping[str, Shape]

    @cached_property
    def shape(self) -> Record:
        return Record(
            {
                "schema": Whole(self.schema, self.schema),
                "receipt_id": IDENTITY,
                "request_id": ADDRESS_KEY,
                "request_digest": DIGEST,
                "profile": OneOf(limits.PROFILE),
                "namespace": ADDRESS_KEY,
                "owner": IDENTIFIER,
                "policy_revision": IDENTIFIER,
                "subject": IDENTIFIER,
                "purpose": OneOf("answer"),
                "policy": OneOf(*self.policies),
                "query_digest": DIGEST,
                "budgets": Record({**_BUDGETS, **self.budgets}),
                "outcome": OneOf("selected", "miss"),
                "selected": Several(Record({**_SELECTED, **self.selected}), limits.TOP_K_MAX),
                "omitted": Several(_OMITTED, limits.TOP_K_MAX),
                **self.account,
                "created_at": Moment(),
                "receipt_digest": DIGEST,
            }
        )

    def holds(self, receipt: dict[str, Any]) -> bool:
        """Say whether a receipt has this form, fits its budgets, and carries the digest of the request it tells."""
        return (
            self.shape.holds(receipt)
            and _is_fitted(receipt, canonical.read_real(_at(receipt, self.least)))
            and canonical.same(self.request_digest(receipt), receipt["request_digest"])
        )

    def request_digest(self, receipt: dict[str, Any]) -> str:
        """Compute the digest of the request that a receipt tells: all of it stands there but the words of the query."""
        request = {name: _at(receipt, path) for name, path in {**_ASKED, **self.asked}.items()}
        return canonical.digest_of(self.request_domain, request)

    def sql(self, at: str) -> str:
        """Write as SQL whether the jsonb `at` has this form, says each note once, and carries both digests."""
        request = {name: f"({at} #> '{{{','.join(path)}}}')::text" for name, path in {**_ASKED, **self.asked}.items()}
        sealed = self.shape.canonical_sql(at, without="receipt_digest")
        return f"""(CASE WHEN {self.shape.sql(at)} THEN
            {canonical.sql_digest(DIGEST_DOMAIN[self.schema], sealed)}
                = {at} ->> 'receipt_digest'
            AND {canonical.sql_digest(self.request_domain, canonical.sql_object(request))}
                = {at} ->> 'request_digest'
            AND ({at} ->> 'outcome' = 'selected') = (jsonb_array_length({at} -> 'selected') > 0)
            AND (SELECT count(*) <= ({at} #>> '{{budgets,top_k}}')::bigint
                        AND count(DISTINCT note ->> 'note_id') = count(*)
                        AND count(DISTINCT note ->> 'rank') = count(*)
                        AND coalesce(max((note ->> 'rank')::bigint), 0) = count(*)
                 FROM jsonb_array_elements({at} -> 'selected' || ({at} -> 'omitted')) AS one (note))
            AND (SELECT coalesce(sum((note ->> 'char_count')::bigint), 0)
                        <= ({at} #>> '{{budgets,char_budget}}')::bigint
                   FROM jsonb_array_elements({at} -> 'selected') AS taken (note))
            ELSE false END)"""


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value[name]
    return value


def _is_fitted(receipt: Mapping[str, Any], least_score: float) -> bool:
    """Say whether what was taken and left out is what its ranking and its budgets make of it (R-L-105)."""
    ranked = sorted([*receipt["selected"], *receipt["omitted"]], key=lambda note: int(note["rank"]))
    order = [(-canonical.read_real(note["score"]), note["note_id"]) for note in ranked]
    remaining, taken = receipt["budgets"]["char_budget"], []
    for note in ranked:
        if note["char_count"] <= remaining:
            remaining -= note["char_count"]
            taken.append(note)
    return (
        [note["rank"] for note in ranked] == list(range(1, len(ranked) + 1))
        and len(ranked) <= receipt["budgets"]["top_k"]
        and len({note["note_id"] for note in ranked}) == len(ranked)
        and order == sorted(order)
        and all(-score >= least_score for score, _ in order)
        and taken == receipt["selected"]
        and receipt["outcome"] == ("selected" if taken else "miss")
    )


LEXICAL: Final = ReceiptForm(
    schema=LEXICAL_SCHEMA,
    policies=(limits.LEXICAL_POLICY,),
    request_domain=canonical.LEXICAL_REQUEST,
    asked={"text_configuration": ("lexical", "text_configuration"), "min_rank": ("budgets", "min_rank")},
    account={
        "lexical": Record(
            {
                "text_configuration": Text(limits.TEXT_CONFIGURATION_PATTERN),
                "lexer_fingerprint": DIGEST,
                "corpus_notes": COUNT,
                "mean_length": Real(0),
                "cut_off": Real(0, 1),
                "lexemes_asked": COUNT,
                "lexemes_found": COUNT,
                "lexemes_left_out": COUNT,
            }
        )
    },
    least=("budgets", "min_rank"),
    budgets={"min_rank": Real(0)},
    selected={},
)

FORMS: Final[dict[int, ReceiptForm]] = {LEXICAL_SCHEMA: LEXICAL}
"""The form of each schema; whoever writes another kind of receipt enters it when the application is ready."""


def is_whole(receipt: Any) -> bool:
    """Say whether this is a receipt of a known schema, in its closed form, that tells the request it answered."""
    if not isinstance(receipt, dict) or type(receipt.get("schema")) is not int:
        return False
    form = FORMS.get(receipt["schema"])
    return form is not None and form.holds(receipt)
