from typing import Any

from django.apps import AppConfig


class SemanticConfig(AppConfig):
    """Derived vectors and their ranking; the archive does not know it exists."""

    name = "semantic"
    verbose_name = "Semantic"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let the closed lists of refusals and receipts hold these, register the checks, teach connections vectors."""
        from django.db.backends.signals import connection_created

        from archive.forms import FORMS
        from archive.seals import SEMANTIC_SCHEMA
        from semantic import checks, forms, refusals  # noqa: F401 - a refusal is known once its class is

        FORMS[SEMANTIC_SCHEMA] = forms.SEMANTIC
        checks.register()
        connection_created.connect(_teach, dispatch_uid="semantic.vectors")


def _teach(connection: Any, **_: Any) -> None:
    from semantic import vectors

    vectors.taught(connection.connection)
