"""The worker's application: one queue, no schedule, no results."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lychd.settings")

app = Celery("lychd", task_cls="lychd.patience:PatientTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add("lychd.patience:Patience")
