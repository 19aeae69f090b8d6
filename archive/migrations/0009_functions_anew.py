"""Set the functions of the index of words anew, since migration 0002 was changed after archives had been made by it.

What 0002 says today is what a new archive gets, so it is taken from there. Where words were cut by other rules, the
namespaces stand as `rebuilding` afterwards: recall of them refuses until `lychd lexical rebuild`, and never answers
otherwise than a new archive would.
"""

from importlib import import_module
from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

_LEXICAL = import_module("archive.migrations.0002_lexical")

# Those that decide how a text is cut.
CUTTING = "('archive_lexeme_counts', 'archive_lexemes', 'archive_postings_enter')"
DIGEST = (
    "(SELECT encode(sha256(convert_to(string_agg(prosrc, ' ' ORDER BY proname), 'UTF8')), 'hex') FROM pg_catalog.pg_proc"
    f" WHERE pronamespace = 'public'::regnamespace AND proname IN {CUTTING})"
)

REMEMBER = f"SELECT set_config('lychd.cut_before', {DIGEST}, true)"

# Another result cannot be put in place of the old one. Where it is the same, nobody who cuts meanwhile misses the function.
DROP_IF_OTHER = """
DO $block$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_catalog.pg_proc
        WHERE oid = to_regprocedure('public.archive_lexeme_counts(regconfig, text)') AND 'asked' = ANY (proargnames)) THEN
        DROP FUNCTION public.archive_lexeme_counts(regconfig, text);
    END IF;
END
$block$
"""

FUNCTIONS = tuple(
    statement.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)
    for statement in (
        _LEXICAL.COUNTS,
        _LEXICAL.LEXEMES,
        _LEXICAL.ENTER,
        _LEXICAL.TRIGGER_FUNCTION,
        _LEXICAL.FINGERPRINT,
        _LEXICAL.HELD_FOR_REBUILD,
        _LEXICAL.REBUILD_SLICE,
        _LEXICAL.REBUILD_FINISH,
    )
)

REFUSE_UNTIL_REBUILT = f"""
DO $block$
DECLARE
    cut_otherwise bigint;
BEGIN
    IF current_setting('lychd.cut_before') = {DIGEST} THEN
        RETURN;
    END IF;
    FOR cut_otherwise IN
        SELECT id FROM public.archive_namespace WHERE lexical_state = 'ready' ORDER BY id FOR UPDATE
    LOOP
        PERFORM set_config('lychd.lexical_rebuild', cut_otherwise::text, true);
        UPDATE public.archive_namespace SET lexical_state = 'rebuilding', row_version = row_version + 1
        WHERE id = cut_otherwise;
    END LOOP;
    PERFORM set_config('lychd.lexical_rebuild', '', true);
END
$block$
"""


class Migration(migrations.Migration):
    """Bring an archive to the functions of today, whichever form of migration 0002 had made it."""

    dependencies = [("archive", "0008_waiting")]

    # There is no way back to rules that nobody knows; undone, the functions stay as they are.
    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(statement, migrations.RunSQL.noop)
        for statement in (REMEMBER, DROP_IF_OTHER, *FUNCTIONS, REFUSE_UNTIL_REBUILT)
    ]
