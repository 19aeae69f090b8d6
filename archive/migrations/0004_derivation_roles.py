"""Name the sets of actions that derivation and semantic recall add; roles are data, grants are given from them."""

from django.db import migrations

ADDED = {
    "recaller": ("semantic_recall", "semantic_resolve"),
    "inspector": ("discover_generation", "inspect_derivation"),
    "operator": ("discover_generation", "register_generation", "retire_generation", "inspect_derivation"),
}
DERIVER = ("discover_generation", "prepare_derivation", "execute_derivation", "inspect_derivation")


def _array(actions: tuple[str, ...]) -> str:
    return "ARRAY[" + ", ".join(f"'{action}'" for action in actions) + "]"


def _more(role: str, actions: tuple[str, ...]) -> str:
    return f"UPDATE lychd_role SET actions = actions || {_array(actions)} WHERE name = '{role}'"


def _less(role: str, actions: tuple[str, ...]) -> str:
    return (
        "UPDATE lychd_role SET actions = ARRAY(SELECT action FROM unnest(actions) WITH ORDINALITY AS held (action, place)"
        f" WHERE action <> ALL ({_array(actions)}) ORDER BY place) WHERE name = '{role}'"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("archive", "0003_same_namespace"),
    ]

    operations = [
        *(migrations.RunSQL(_more(role, actions), _less(role, actions)) for role, actions in ADDED.items()),
        migrations.RunSQL(
            f"INSERT INTO lychd_role (name, actions) VALUES ('deriver', {_array(DERIVER)})",
            "DELETE FROM lychd_role WHERE name = 'deriver'",
        ),
    ]
