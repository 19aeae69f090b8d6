from django.apps import AppConfig


class ArchiveConfig(AppConfig):
    """The records themselves; knows nothing of what is derived from them."""

    name = "archive"
    verbose_name = "Archive"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks of the settings."""
        from archive import checks

        checks.register()
