"""Settings of a worker in an installation of its own, as the environment describes it, with an embedder to hold."""

from lychd.settings import *  # noqa: F403

LYCHD_EMBEDDERS = {"stand-in": "tests.semantic.held.Held"}
