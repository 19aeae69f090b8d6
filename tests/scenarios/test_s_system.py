"""S. Whole-system: what the deployment file and the description of the API say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from archive.api import description

ROOT = Path(__file__).resolve().parents[2]

# Table 5.14 and 0.10, 0.14, 0.15, as far as the archive and its inspection reach.
TABLE = {
    ("GET", "/configuration"),
    ("GET", "/interface-projection"),
    ("GET", "/generation-configuration"),
    ("POST", "/ns/{ns}/notes"),
    ("POST", "/ns/{ns}/notes/batch"),
    ("POST", "/ns/{ns}/transitions"),
    ("GET", "/ns/{ns}/notes/{note_id}/text"),
    ("GET", "/ns/{ns}/notes"),
    ("GET", "/ns/{ns}/notes/{note_id}"),
    ("GET", "/ns/{ns}/intakes/{request_id}"),
    ("GET", "/ns/{ns}/notes/{note_id}/events"),
    ("POST", "/ns/{ns}/notes/{note_id}/promote"),
    ("POST", "/ns/{ns}/notes/{note_id}/archive"),
    ("POST", "/ns/{ns}/notes/{note_id}/revoke"),
    ("POST", "/ns/{ns}/recalls"),
    ("POST", "/ns/{ns}/recalls/{request_id}/resolve"),
    ("GET", "/ns/{ns}/receipts/{request_id}"),
    ("POST", "/ns/{ns}/notes/{note_id}/flags"),
    ("GET", "/ns/{ns}/intakes"),
    ("GET", "/ns/{ns}/generations"),
    ("GET", "/ns/{ns}/generations/{reference}"),
    ("POST", "/ns/{ns}/derivations"),
    ("GET", "/ns/{ns}/derivations"),
    ("GET", "/ns/{ns}/derivations/{derivation_id}"),
    ("POST", "/ns/{ns}/derivations/{derivation_id}/attempts"),
    ("POST", "/ns/{ns}/semantic-recalls"),
    ("POST", "/ns/{ns}/semantic-recalls/{request_id}/resolve"),
}
# Beside the table: whoever kept a text follows the events to learn that it was withdrawn.
BESIDE = {("GET", "/ns/{ns}/events")}
# Of slices that are not built: one that is here already belongs into the table.
LATER = {("GET", "/ns/{ns}/receipts/{request_id}/explanation")}
METHODS = {"get", "post", "put", "patch", "delete", "options", "trace"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def test_s331_the_deployment_has_web_worker_database_and_broker_and_no_schedule(compose):
    services = compose["services"]
    assert {"web", "worker", "postgres", "redis"} <= set(services)
    assert services["postgres"]["image"].startswith("pgvector/pgvector:")
    assert services["redis"]["image"].startswith("redis:")
    worker = services["worker"]["command"]
    assert worker[worker.index("--queues") + 1] == "embedding"
    for name, service in services.items():
        assert "beat" not in name
        assert "beat" not in " ".join(map(str, service.get("command") or ())).split()
        assert "-B" not in (service.get("command") or ())


def test_s331_only_what_migrates_is_logged_in_as_the_owner(compose):
    owners = [
        name for name, service in compose["services"].items() if "DATABASE_OWNER_URL" in service.get("environment", {})
    ]
    assert owners == ["migrate"]


def described() -> set[tuple[str, str]]:
    """Every method and path of the API's description, below /api/v1."""
    found = set()
    for path, item in description.document()["paths"].items():
        assert path.startswith("/api/v1/")
        found |= {(method.upper(), path.removeprefix("/api/v1")) for method in item if method in METHODS}
    return found


def test_s332_the_description_has_the_addresses_of_the_table_and_no_other():
    found = described()
    assert not (TABLE | BESIDE) - found, "in the table and not in the description"
    assert not found - TABLE - BESIDE, "in the description and not in the table"
    assert not found & LATER, "built, and still listed as later"


def test_s332_nothing_can_be_registered_retired_configured_or_granted_over_http():
    for method, path in described():
        if method == "POST":
            assert not any(word in path for word in ("generation", "regist", "retire", "grant", "principal", "token"))
        assert method in {"GET", "POST"}
