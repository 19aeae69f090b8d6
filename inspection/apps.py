from django.apps import AppConfig


class InspectionConfig(AppConfig):
    """Reading pages and endpoints; it has no model and no operation."""

    name = "inspection"
    verbose_name = "Inspection"
