from django.apps import AppConfig


class LychdConfig(AppConfig):
    """The host: it applies grants after each migration and checks what it serves from."""

    name = "lychd"
    verbose_name = "LychD"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the grants to migrations and register the checks of the database."""
        from django.db.models.signals import post_migrate

        from lychd import roles

        roles.register_checks()
        post_migrate.connect(roles.after_migrate, dispatch_uid="lychd.roles")
