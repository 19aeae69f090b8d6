"""The other process: `python -m tests.semantic.worker`, told by TEST_WORKER where it works and where it stops."""

import os

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.semantic.worker_settings")
    django.setup()

    from tests.semantic import held

    held.run()
