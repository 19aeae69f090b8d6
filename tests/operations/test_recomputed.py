"""What was written past the triggers: `doctor` computes every row again and names what is not what it says."""

import pytest

from lychd import doctor
from tests import cast

ZEROS = "repeat('0', 64)"
FORGERIES = {
    "a text that is not its digest": ("notes", "UPDATE archive_note SET text = 'Forged.'"),
    "a digest that is no text's": ("notes", f"UPDATE archive_note SET text_digest = {ZEROS}"),
    "a length": ("notes", "UPDATE archive_note SET char_count = 1, byte_count = 1"),
    "an origin": ("notes", "UPDATE archive_note SET asserted_origin = 'elsewhere/1'"),
    "a kind": ("notes", "UPDATE archive_note SET kind = 'other'"),
    "a source": ("notes", "UPDATE archive_source SET source_key = source_key || '-elsewhere'"),
    "a material digest": ("notes", f"UPDATE archive_note SET material_digest = {ZEROS}"),
    "a request digest": ("requests", f"UPDATE archive_intake_request SET request_digest = {ZEROS}"),
    "a request of somebody else": ("requests", "UPDATE archive_intake_request SET subject = 'mallory'"),
    "another request": ("requests", "UPDATE archive_intake_request SET request_id = request_id || '-other'"),
    "a binding digest": ("bindings", f"UPDATE archive_namespace SET binding_digest = {ZEROS}"),
    "an owner": ("bindings", "UPDATE archive_namespace SET owner = 'mallory'"),
    "a state without a step": ("events", "UPDATE archive_note SET state = 'archived'"),
    "a version without a step": ("events", "UPDATE archive_note SET lifecycle_version = 7"),
    "a step from elsewhere": (
        "events",
        "UPDATE archive_lifecycle_event SET from_state = 'archived' WHERE to_version = 2",
    ),
    "a step before the birth": ("events", "UPDATE archive_lifecycle_event SET id = -7 WHERE to_version = 2"),
    "a birth by somebody else": ("events", "UPDATE archive_lifecycle_event SET subject = 'eve' WHERE to_version = 1"),
}


def said(check: str) -> doctor.Finding:
    (finding,) = (one for one in doctor._recomputed(deep=True) if one.check == check)
    return finding


@pytest.fixture
def grown(alice, bob):
    cast.promoted(alice, "Roses want sun.", source="a", asserted_origin="letters/1")
    return cast.admitted(alice, "Roses, and “what” they \\ want.", source="b")


@pytest.mark.usefixtures("grown")
def test_what_the_operations_wrote_is_what_it_says():
    assert {one.verdict for one in doctor._recomputed(deep=True)} == {doctor.Verdict.OK}
    assert {one.check for one in doctor._recomputed(deep=False)} == {"notes", "requests", "bindings"}


@pytest.mark.usefixtures("grown")
@pytest.mark.parametrize("name", FORGERIES)
def test_the_doctor_names_what_was_forged(superuser, name):
    check, statement = FORGERIES[name]
    superuser.execute("SET session_replication_role = replica")
    superuser.execute(statement)
    assert said(check).verdict is doctor.Verdict.FAILED
