"""The whole way once: register, prepare, embed, recall by meaning, resolve."""

import re
import subprocess
import sys

from archive.seals import verify
from lychd.environment import CHECKOUT
from semantic.lifecycle import EDGES
from semantic.operations.resolution import resolve
from tests import cast
from tests.semantic import acts


def test_a_note_is_embedded_found_by_meaning_and_resolved(meaning, alice, bob, otto, dora):
    note = cast.promoted(alice, "Roses want morning sun.")
    acts.registered(otto)

    row = acts.derived(dora, note)
    answer = acts.asked(bob, "roses in the sun", request_id="s1")

    assert (row.state, row.attempt, row.row_version) == ("complete", 1, 3)
    assert answer.receipt["coverage"] == {"promoted": 1, "complete": 1}
    assert [chosen["note_id"] for chosen in answer.receipt["selected"]] == [str(note.id)]
    assert verify(answer.receipt)
    assert [source.text for source in resolve(bob, "s1").sources] == ["Roses want morning sun."]


def test_the_page_of_the_states_is_the_table_of_the_code():
    page = (CHECKOUT / "docs" / "semantic.md").read_text(encoding="utf-8")
    rows = re.search(r"<!-- edges -->\n[^\n]*\n[^\n]*\n(.*?)<!-- /edges -->", page, re.DOTALL)
    assert rows
    told = {tuple(word.strip() for word in line.strip("|").split("|")) for line in rows[1].strip().splitlines()}
    assert told == {(start.value, end.value) for start, end in EDGES}


def test_no_process_that_does_not_embed_imports_a_model():
    """Web, worker and command processes alike, until somebody embeds in them."""
    program = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'lychd.settings_test'\n"
        "import django; django.setup()\n"
        "import lychd.urls, lychd.celery, lychd.commands.derived, semantic.tasks, semantic.operations.recall\n"
        "heavy = {'torch', 'sentence_transformers', 'transformers', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
