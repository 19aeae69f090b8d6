from typing import Any

from django.apps import AppConfig


class SemanticConfig(AppConfig):
    """Derived vectors and their ranking; the archive does not know it exists."""

    name = "semantic"
    verbose_name = "Semantic"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let the closed list of refusals hold these too, register the checks, and teach connections vectors."""
        from django.db.backends.signals import connection_created

        from semantic import checks, refusals  # noqa: F401 - a refusal is known once its class is

        checks.register()
        connection_created.connect(_teach, dispatch_uid="semantic.vectors")


def _teach(connection: Any, **_: Any) -> None:
    from semantic import vectors

    vectors.taught(connection.connection)
