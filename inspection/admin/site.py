"""The admin site and its one kind of page: a list or a record, read in a snapshot that two check points enclose."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.paginator import Paginator
from django.db.models import BigAutoField, Model, QuerySet, TextField, UUIDField
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, include, path, reverse
from django.utils.functional import cached_property

from archive import limits
from archive.authority import Action, Point
from archive.curation.door import signed_in
from archive.gates import gate
from archive.refusals import AuthorityRefused, InvalidRequest, RecordAbsent
from archive.transactions import read_only
from inspection.admin.scope import ACTIONS, Scope

Column = Callable[[Any], object]
Rows = Callable[[Scope, Action], "QuerySet[Any]"]

LISTED_MAX: Final = 5_000
"""How far a list is counted and paged; what lies beyond is found by its identifier or a filter."""
_COLUMNS_MAX: Final = 6
_GROUPS: Final = {"archive": "Archive and host", "semantic": "Derived"}
_NUMBER_DIGITS: Final = 18


def column(label: str, where: str, how: Callable[[Any], object] = str) -> Column:
    """One value of a row under a heading. It names its column, so that no other one is ever selected."""

    def shown(row: Any) -> object:
        value = functools.reduce(
            lambda held, name: None if held is None else getattr(held, name), where.split("."), row
        )
        return "none" if value is None or value == "" else how(value)

    shown.__name__ = where.replace(".", "_")
    shown.short_description = label  # type: ignore[attr-defined]
    shown.where = where.replace(".", "__")  # type: ignore[attr-defined]
    return shown


@dataclass(frozen=True)
class Table:
    """How one model is looked at."""

    model: type[Model]
    name: str
    tells: str
    action: Action
    rows: Rows
    columns: tuple[Column, ...]
    more: tuple[Column, ...]
    order: tuple[Any, ...]
    found_by: tuple[str, ...]
    states: tuple[str, ...] = ()
    state_in: str = "state"

    def __post_init__(self) -> None:
        if len(self.columns) > _COLUMNS_MAX:
            raise ValueError(f"{self.name}: a list has at most {_COLUMNS_MAX} columns")


class Shown(HttpRequest):
    """A request behind the door of the admin."""

    scope: Scope
    rows: Callable[[], tuple["Table", list[Any]]]
    """What the page showed, once it was written out."""


class Counted(Paginator):  # type: ignore[type-arg]
    """Pages over the first rows of a list; nothing counts a whole table."""

    @cached_property
    def count(self) -> int:
        return int(self.object_list[:LISTED_MAX].count())  # type: ignore[attr-defined]


class LookingSite(admin.AdminSite):
    """Lists and records for whoever the authorizer allows to inspect; staff and superusers get nothing extra."""

    site_header = site_title = "LychD Archive"
    index_title = "All tables"
    index_template = "admin/tables.html"
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        return hasattr(request, "scope")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        return [
            {"app_label": label, "name": name, "models": list(self._tables(request, label))}
            for label, name in _GROUPS.items()
        ]

    def _tables(self, request: HttpRequest, label: str) -> Iterator[dict[str, str]]:
        for model, looked_at in self._registry.items():
            if model._meta.app_label == label and looked_at.has_view_permission(request):
                table: Table = looked_at.table  # type: ignore[attr-defined]
                address = reverse(f"admin:{label}_{model._meta.model_name}_changelist")
                yield {"name": table.name, "tells": table.tells, "admin_url": address}

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Let a page be read in one snapshot, and leave only if the answers of before still stand (R-L-138)."""

        @signed_in("GET", "HEAD", "POST")
        @functools.wraps(view)
        def page(request: Any, subject: str, **named: Any) -> HttpResponse:
            if request.method == "POST":
                # There is nothing that a form could be sent for.
                raise AuthorityRefused
            return self._looked_at(view, request, subject, named)

        return page

    def _looked_at(self, view: Callable[..., Any], request: Any, subject: str, named: dict[str, Any]) -> HttpResponse:
        chosen = request.GET.get(InNamespace.parameter_name) or None
        looked_at = getattr(view, "__self__", None)
        told = (looked_at.table.action,) if isinstance(looked_at, Looking) else ACTIONS
        request.scope = Scope.of(subject, Point.A0, chosen, told)
        try:
            with read_only():
                response: HttpResponse = view(request, **named)
                if isinstance(response, TemplateResponse):
                    # Before the snapshot ends: a list is read when it is written out.
                    response.render()
        except PermissionDenied:
            raise AuthorityRefused from None
        except Http404:
            raise RecordAbsent from None
        except SuspiciousOperation:
            raise InvalidRequest from None
        gate("admin.A2")
        if Scope.of(subject, Point.A2, chosen, told) != request.scope or not _still_shown(request):
            raise AuthorityRefused
        return response

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [
            path("", self.admin_view(self.index), name="index"),
            *(
                path(f"{model._meta.app_label}/{model._meta.model_name}/", include(looked_at.urls))
                for model, looked_at in self._registry.items()
            ),
        ]


def _still_shown(request: Any) -> bool:
    """Whether every row that a page shows is one that may be looked at now."""
    if not hasattr(request, "rows"):
        return True
    table, rows = request.rows()
    with read_only():
        standing = table.rows(request.scope, table.action).filter(pk__in=[row.pk for row in rows])
        return len(standing.values_list("pk", flat=True)) == len(rows)


class InNamespace(admin.SimpleListFilter):
    """The namespace in the address, to which the scope of the request is narrowed already."""

    title = "namespace"
    parameter_name = "namespace"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        return queryset


class InState(admin.SimpleListFilter):
    """The state in the address."""

    title = "state"
    parameter_name = "state"

    def __init__(self, request: HttpRequest, params: Any, model: type[Model], model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        self._column: str = model_admin.table.state_in

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, state) for state in model_admin.table.states]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> "QuerySet[Any]":
        return queryset if self.value() is None else queryset.filter(**{self._column: self.value()})


class Looking(admin.ModelAdmin):  # type: ignore[type-arg]
    """One table: at most six columns in its list, a record in full but for its text; nothing can be sent to it."""

    table: ClassVar[Table]
    actions = None
    sortable_by = ()
    list_per_page = limits.PAGE_SIZE_DEFAULT
    list_max_show_all = limits.PAGE_SIZE_DEFAULT
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = Counted
    view_on_site = False
    change_list_template = "admin/list.html"
    change_form_template = "admin/record.html"

    # --- who may ----------------------------------------------------------------------------------------------------

    def has_module_permission(self, request: Any) -> bool:
        return self.table.action in request.scope.actions

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        return self.table.action in request.scope.actions

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """No address compares a column: `?text__startswith=` would tell a text letter by letter."""
        return lookup in {one.parameter_name for one in self.get_list_filter(request)}

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return False

    # --- what is selected -------------------------------------------------------------------------------------------

    def get_queryset(self, request: Any) -> "QuerySet[Any]":
        return self._selecting(request, self.table.columns)

    def get_object(self, request: Any, object_id: str, from_field: Any = None) -> Any:
        if not self.has_view_permission(request):
            # The framework asks only once it has looked (R-L-031).
            raise PermissionDenied
        given = _read(self.opts.pk, object_id)
        rows = self._selecting(request, (*self.table.columns, *self.table.more))
        found = None if given is None else rows.filter(pk=given).first()
        request.rows = lambda: (self.table, [] if found is None else [found])
        return found

    def _selecting(self, request: Any, columns: tuple[Column, ...]) -> "QuerySet[Any]":
        wanted = [one.where for one in columns]  # type: ignore[attr-defined]
        related = sorted({name.rpartition("__")[0] for name in wanted if "__" in name})
        rows = self.table.rows(request.scope, self.table.action).only("pk", *wanted)
        return (rows.select_related(*related) if related else rows).order_by(*self.table.order)

    def get_search_results(
        self, request: Any, queryset: "QuerySet[Any]", search_term: str
    ) -> "tuple[QuerySet[Any], bool]":
        """Find a row by a whole identifier; a part of one finds nothing."""
        term = search_term.strip()
        if not term:
            return queryset, False
        # Each column is looked up by its own index: the planner takes none for an "or" over two tables.
        rows = self.table.rows(request.scope, self.table.action).order_by()
        named = [
            rows.filter(**{name: given}).values("pk")
            for name in self.table.found_by
            if (given := _read(_field(self.model, name), term)) is not None
        ]
        if not named:
            return queryset.none(), False
        return queryset.filter(pk__in=named[0].union(*named[1:], all=True) if named[1:] else named[0]), False

    # --- how it looks -----------------------------------------------------------------------------------------------

    def get_list_display(self, request: HttpRequest) -> Any:
        return self.table.columns

    def get_ordering(self, request: HttpRequest) -> Any:
        return self.table.order

    def get_search_fields(self, request: HttpRequest) -> Any:
        return self.table.found_by

    def get_list_filter(self, request: HttpRequest | None) -> Any:
        return (InNamespace, InState) if self.table.states else (InNamespace,)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.table.columns, *self.table.more)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.table.columns, *self.table.more)

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        shown = {
            "title": self.table.name,
            "table": self.table,
            "listed_max": LISTED_MAX,
            "chosen": request.scope.chosen,
            "cut": request.scope.cut,
            "asked_max": limits.PAGE_SIZE_MAX,
        }
        if "e" in request.GET:
            raise SuspiciousOperation
        response: Any = super().changelist_view(request, shown)
        if response.status_code == 302:
            # The framework sends a wrong filter back without it; an address that asks wrongly is refused here.
            raise SuspiciousOperation
        request.rows = lambda: (self.table, list(response.context_data["cl"].result_list))
        return response

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        return super().change_view(request, object_id, form_url, {"table": self.table, "title": self.table.name})

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> Any:
        raise Http404

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name=f"{name}_changelist"),
            path("<path:object_id>/change/", view(self.change_view), name=f"{name}_change"),
        ]


def _field(model: type[Model], name: str) -> Any:
    held: Any = model
    *relations, last = name.split("__")
    for relation in relations:
        held = held._meta.get_field(relation).related_model
    return held._meta.get_field(last)


def _read(field: Any, term: str) -> Any:
    """Read a term as a value of this column, or None where it cannot be one."""
    if "\x00" in term or not term.isprintable() or len(term) > limits.REFERENCE_MAX:
        return None
    if isinstance(field, UUIDField):
        try:
            return UUID(term)
        except ValueError:
            return None
    if isinstance(field, BigAutoField):
        return int(term) if term.isascii() and term.isdigit() and len(term) <= _NUMBER_DIGITS else None
    return term if isinstance(field, TextField) else None
