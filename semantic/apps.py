from django.apps import AppConfig


class SemanticConfig(AppConfig):
    """Derived vectors and their ranking; the archive does not know it exists."""

    name = "semantic"
    verbose_name = "Semantic"
    default_auto_field = "django.db.models.BigAutoField"
