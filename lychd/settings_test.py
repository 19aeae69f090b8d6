"""Settings of the test suite: an instance of its own, logged in as the owner so that test databases can be made."""

import os

# Before the base settings read them. Several suites may run on one machine, each with a folder of its own.
if _folder := os.environ.get("LYCHD_TEST_STATE_DIR"):
    os.environ["LYCHD_STATE_DIR"] = _folder
os.environ["LYCHD_INSTANCE"] = "test"
os.environ.setdefault("LYCHD_ARCHIVE_PROFILE", "local-public-notes@1")
os.environ.setdefault("LYCHD_COORDINATION", "process")

from lychd.settings import *
from lychd.settings import DATABASES, LYCHD_STATE_DIR

# After set-up the tests take on the serving role; see tests/conftest.py.
DATABASES["default"] = {**DATABASES["owner"], "TEST": {}}

LYCHD_OPEN_DESCRIPTION = False
ALLOWED_HOSTS = ["testserver", "localhost"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_TASK_ALWAYS_EAGER = False
# Each process that hands out tests counts for itself.
LYCHD_EMBEDDING_LOCK = LYCHD_STATE_DIR / f"embedding-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}.lock"
