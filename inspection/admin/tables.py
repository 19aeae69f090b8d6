"""Every table of the archive, of what is derived and of the host: its columns, by name. No text, vector or secret."""

from typing import Final

from inspection.admin import authority, bindings, derived, material
from inspection.admin.site import Looking, LookingSite

TABLES: Final = (*material.TABLES, *derived.TABLES, *bindings.TABLES, *authority.TABLES)

site: Final = LookingSite(name="admin")
for _table in TABLES:
    site.register(_table.model, type(f"{_table.model.__name__}Looking", (Looking,), {"table": _table}))
