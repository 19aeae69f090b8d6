from archive.lifecycle import Reason, State
from archive.operations import host
from archive.operations.flag import flag
from archive.operations.intake import intake_many
from archive.operations.migration import migrate
from archive.operations.resolution import resolve
from archive.operations.review import review
from archive.operations.transition import promote, revoke, transition_many
from tests import cast


def test_the_whole_way_from_candidate_to_migration(garden, alice, bob, otto):
    note = cast.admitted(alice, "Roses want morning sun.", source="roses")
    assert cast.asked(bob, "roses").receipt["outcome"] == "miss"
    moved = promote(alice, cast.step(note, State.PROMOTED))
    answer = cast.asked(bob, "roses", request_id="q1")
    assert answer.receipt["outcome"] == "selected"
    assert cast.asked(bob, "roses", request_id="q1").outcome == "replayed"
    assert resolve(bob, "q1").sources[0].text == "Roses want morning sun."
    assert review(alice, note.id).text
    assert flag(bob, note.id, Reason.OUTDATED).repeated is False
    assert flag(bob, note.id, Reason.OUTDATED).repeated is True
    many = intake_many(alice, [cast.wanted(f"note {n}", source=f"s{n}") for n in range(60)])
    assert all(a.result for a in many)
    moved = transition_many(alice, [cast.step(a.result.note, State.PROMOTED) for a in many])
    assert all(m.result for m in moved)
    second = cast.promoted(alice, "Roses want evening sun.", source="roses", revision="2")
    revoke(alice, cast.step(second, State.REVOKED))
    new = host.configure_namespace(
        "garden", owner="estate2", policy_revision="p2", by="x", text_configuration="english"
    )
    host.grant("otto", new, host.actions_of(["operator"]), by="x")
    done = migrate(garden.caller("otto"), reason="why", carry_grants=True)
    assert done.carried_grants > 0
    assert done.rebuild_needed
