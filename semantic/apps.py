from django.apps import AppConfig


class SemanticConfig(AppConfig):
    """Derived vectors and their ranking; the archive does not know it exists."""

    name = "semantic"
    verbose_name = "Semantic"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Let the closed list of refusals hold these too, and register the checks of the settings."""
        from semantic import checks, refusals  # noqa: F401 - a refusal is known once its class is

        checks.register()
