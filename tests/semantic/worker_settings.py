"""Settings of a worker that a test starts: the test's own database, broker and queue, and an embedder to hold."""

import json
import os
from pathlib import Path

from lychd.settings_test import *  # noqa: F403
from lychd.settings_test import DATABASES

_told = json.loads(os.environ["TEST_WORKER"])

DATABASES["default"] = {
    **DATABASES["default"],
    "NAME": _told["database"],
    "OPTIONS": {**DATABASES["default"]["OPTIONS"], "assume_role": _told["role"]},
}
LYCHD_ARCHIVE = _told["archive"]
LYCHD_EMBEDDERS = {"scripted": "tests.semantic.held.Held"}
LYCHD_TEST_EMBEDDER = True
REDIS_URL = LYCHD_COORDINATION_URL = _told["redis"]
LYCHD_EMBEDDING_LOCK = Path(_told["folder"]) / f"embedding-{os.getpid()}.lock"
CELERY_BROKER_URL = _told["broker"]
CELERY_TASK_DEFAULT_QUEUE = _told["queue"]
CELERY_BROKER_TRANSPORT_OPTIONS = _told["transport"]
CELERY_TASK_ACKS_LATE = _told["late"]
