"""Postings and corpus figures: derived rows that one trigger keeps equal to the promoted notes.

Nothing but the functions below writes `archive_posting` and `archive_corpus`. They belong to the owner of the schema and run with
the owner's rights, so the serving role needs no more than SELECT on the two tables.
"""

from typing import ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

# Note [Scripts written without spaces]
# PostgreSQL's parser makes one token of a whole clause of Japanese or Thai. Runs of these scripts are therefore cut into
# overlapping pairs of code points and never meet the parser: iteration marks and the ideographic zero, kana, Han, Thai, Lao,
# Khmer and Burmese.
HAN = r"\u3005\u3007\u3400-\u4DBF\u4E00-\u9FFF\uF900-\uFAFF\U00020000-\U000323AF"
RUNS = (
    r"\u3041-\u309F\u30A1-\u30FA\u30FC-\u30FF\u31F0-\u31FF\u0E01-\u0E3A\u0E40-\u0E4E\u0E81-\u0ECE\u0EDC-\u0EDF"
    r"\u1780-\u17D3\u17DC-\u17DD\u1000-\u103F\u1050-\u109F" + HAN
)

# A pinned path: these functions run with the owner's rights or decide what a note is found by.
PATH = "SET search_path = pg_catalog, public, pg_temp"

POSTING_TABLE = """
CREATE TABLE archive_posting (
    namespace_id bigint NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    note_number bigint NOT NULL,
    tf smallint NOT NULL,
    length integer NOT NULL,
    PRIMARY KEY (namespace_id, lexeme, note_number) INCLUDE (tf, length)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02)
"""

# Rows leave by the note's number: the text may be gone, or be cut differently by now.
POSTING_INDEX = "CREATE INDEX archive_posting_note ON archive_posting (namespace_id, note_number)"

# ANALYZE would copy words into pg_statistic, where no revocation reaches them.
POSTING_STATISTICS = "ALTER TABLE archive_posting ALTER COLUMN lexeme SET STATISTICS 0"

CORPUS_TABLE = """
CREATE TABLE archive_corpus (
    namespace_id bigint PRIMARY KEY REFERENCES archive_namespace (id),
    notes bigint NOT NULL CONSTRAINT corpus_notes_not_negative CHECK (notes >= 0),
    total_length bigint NOT NULL CONSTRAINT corpus_length_not_negative CHECK (total_length >= 0)
)
"""

# Note [Words inside a word]
# The parser makes one token of `Session.execute` (a host) and of `lib/engine.py` (a file), and a question about `execute`
# would miss the note. Where `.` or `/` stands between two word characters of which at least one is no digit, the parts are
# words as well, beside the whole. Like the single Han characters of a longer run, they let a query find the note and
# say nothing about its length; a query asks for them too, with a count of 0. `3.14` and `2024/05` stay what they are.
COMPOUND = r"(?<=[^\W\d])[./](?=\w)|(?<=\w)[./](?=[^\W\d])"

# Note [Runs that are no word]
# The parser tries a host, a mail address and a file at each place of a run without blanks, every time up to the end of the
# run: `1a@1a@…` of 16,384 characters took it 14 seconds, under an exclusive hold. A run of more than 255 characters is
# therefore no host and no file: its punctuation becomes blank, and the words between it are words. One long word stays.
PUNCTUATION = r"[!-/:-@[-`{-~]+"

# `counted` is what the length of a note is made of, `extra` what only helps to find it; `asked` is false for what a query
# does not ask for: a single Han character inside a longer run.
COUNTS = rf"""
CREATE FUNCTION archive_lexeme_counts(configuration regconfig, body text)
RETURNS TABLE (lexeme text, counted integer, extra integer, asked boolean)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 30 {PATH} SET client_min_messages = warning
AS $function$
#variable_conflict use_column
DECLARE
    normal text := normalize(body, NFKC);
    runs text := regexp_replace(normal, '[^{RUNS}]+', ' ', 'g');
    spaced text := normal;
    parted text;
BEGIN
    IF runs IN ('', ' ') THEN
        runs := '';
    ELSE
        spaced := regexp_replace(normal, '[{RUNS}]+', ' ', 'g');
    END IF;
    IF length(spaced) > 255 AND spaced ~ '\S{{255}}\S' THEN
        SELECT string_agg(
            CASE WHEN length(run) > 255 THEN regexp_replace(run, '{PUNCTUATION}', ' ', 'g') ELSE run END, ' ' ORDER BY place)
        INTO spaced
        FROM regexp_split_to_table(spaced, '\s+') WITH ORDINALITY AS cut (run, place);
    END IF;
    parted := regexp_replace(spaced, '{COMPOUND}', ' ', 'g');
    IF runs = '' AND parted = spaced THEN
        RETURN QUERY
        SELECT words.lexeme, least(cardinality(words.positions), 255), 0, true
        FROM unnest(to_tsvector(configuration, spaced)) AS words;
        RETURN;
    END IF;
    RETURN QUERY
    WITH whole AS MATERIALIZED (
        SELECT words.lexeme, cardinality(words.positions) AS times
        FROM unnest(to_tsvector(configuration, spaced)) AS words
    ),
    letters AS (
        -- One pass over all runs, a blank between two of them: linear however long a run is.
        SELECT letter,
               coalesce(nullif(lag(letter) OVER places, ' '), '') AS before,
               coalesce(nullif(lead(letter) OVER places, ' '), '') AS after
        FROM string_to_table(runs, NULL) WITH ORDINALITY AS spelled (letter, place)
        WINDOW places AS (ORDER BY place)
    ),
    pieces AS (
        SELECT letter || after AS lexeme, 1 AS counted, 0 AS extra, true AS asked
        FROM letters
        WHERE letter <> ' ' AND (after <> '' OR before = '')
        UNION ALL
        SELECT letter, 0, 1, false
        FROM letters
        WHERE letter ~ '[{HAN}]' AND (after <> '' OR before <> '')
        UNION ALL
        SELECT whole.lexeme, whole.times, 0, true FROM whole
        UNION ALL
        SELECT parts.lexeme, 0, cardinality(parts.positions) - coalesce(whole.times, 0), true
        FROM unnest(to_tsvector(configuration, parted)) AS parts LEFT JOIN whole ON whole.lexeme = parts.lexeme
        WHERE parted <> spaced AND cardinality(parts.positions) > coalesce(whole.times, 0)
    )
    SELECT pieces.lexeme, least(sum(pieces.counted), 255)::integer, least(sum(pieces.extra), 255)::integer,
           bool_or(pieces.asked)
    FROM pieces
    GROUP BY pieces.lexeme;
END
$function$
"""

LEXEMES = f"""
CREATE FUNCTION archive_lexemes(configuration regconfig, body text, for_note boolean)
RETURNS TABLE (lexeme text, tf smallint)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE ROWS 30 {PATH}
AS $function$
    SELECT found.lexeme, least(found.counted + CASE WHEN for_note THEN found.extra ELSE 0 END, 255)::smallint
    FROM public.archive_lexeme_counts(configuration, body) AS found
    WHERE for_note OR found.asked
$function$
"""

# Called by the trigger and by the rebuild with the owner's rights; of itself it has the caller's, so it forges nothing.
# Writes the words of one note and gives its length.
ENTER = f"""
CREATE FUNCTION archive_postings_enter(namespace bigint, number bigint, configuration regconfig, body text)
RETURNS integer
LANGUAGE sql VOLATILE {PATH}
AS $function$
    WITH found AS MATERIALIZED (SELECT * FROM public.archive_lexeme_counts(configuration, body)),
    size AS (SELECT coalesce(sum(counted), 0)::integer AS length FROM found),
    entered AS (
        INSERT INTO public.archive_posting (namespace_id, lexeme, note_number, tf, length)
        SELECT namespace, found.lexeme, number, least(found.counted + found.extra, 255)::smallint, size.length
        FROM found, size
    )
    SELECT length FROM size
$function$
"""

TRIGGER_FUNCTION = f"""
CREATE FUNCTION archive_note_postings()
RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {PATH}
AS $function$
DECLARE
    was boolean := false;
    is_now boolean := false;
    namespace bigint;
    configuration regconfig;
    step_notes bigint := 0;
    step_length bigint := 0;
    moved integer;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        was := OLD.state = 'promoted' AND OLD.text IS NOT NULL;
        namespace := OLD.namespace_id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        is_now := NEW.state = 'promoted' AND NEW.text IS NOT NULL;
        namespace := NEW.namespace_id;
    END IF;
    IF NOT was AND NOT is_now OR was AND is_now AND NEW.text = OLD.text THEN
        RETURN NULL;
    END IF;
    IF was THEN
        WITH gone AS (
            DELETE FROM public.archive_posting AS posting
            WHERE posting.namespace_id = namespace AND posting.note_number = OLD.note_number
            RETURNING posting.length
        )
        SELECT coalesce(max(gone.length), 0) INTO moved FROM gone;
        step_notes := step_notes - 1;
        step_length := step_length - moved;
    END IF;
    IF is_now THEN
        SELECT holder.text_configuration::regconfig INTO STRICT configuration
        FROM public.archive_namespace AS holder WHERE holder.id = namespace;
        moved := public.archive_postings_enter(namespace, NEW.note_number, configuration, NEW.text);
        step_notes := step_notes + 1;
        step_length := step_length + moved;
    END IF;
    UPDATE public.archive_corpus AS corpus
    SET notes = corpus.notes + step_notes, total_length = corpus.total_length + step_length
    WHERE corpus.namespace_id = namespace;
    IF NOT FOUND THEN
        INSERT INTO public.archive_corpus (namespace_id, notes, total_length)
        VALUES (namespace, step_notes, step_length);
    END IF;
    RETURN NULL;
END
$function$
"""

TRIGGER = """
CREATE TRIGGER postings AFTER INSERT OR DELETE OR UPDATE OF state, text ON archive_note
FOR EACH ROW EXECUTE FUNCTION archive_note_postings()
"""

# Ten scripts and the shapes a technical note is full of. Whatever changes how words are cut moves the digest: another parser,
# another LC_CTYPE, other dictionaries, other Unicode tables.
PROBE = (
    "Ångström naïve ﬁnding İstanbul STRASSE straße user_id foo-bar/baz.py v1.2.3 https://example.org/a?b=c a@example.org 1e-9 "
    "Ὀδυσσεύς ΤΕΛΟΣ ёлка БЪЛГАРИЯ שָׁלוֹם العَرَبِيَّة कठिनाइयाँ 한국어 문장 日本語の全文検索ｶﾞｷﾞ 漢々〇字 ภาษาไทยง่าย ພາສາລາວ ភាសាខ្មែរ မြန်မာဘာသာ"
)

FINGERPRINT = f"""
CREATE FUNCTION archive_lexer_fingerprint(configuration regconfig)
RETURNS text
LANGUAGE sql STABLE STRICT PARALLEL SAFE {PATH}
AS $function$
    SELECT encode(sha256(convert_to(
        current_setting('server_version_num') || ' ' || unicode_version() || ' '
        || coalesce(string_agg(probe.lexeme || ':' || probe.tf, ' ' ORDER BY probe.lexeme COLLATE "C"), ''), 'UTF8')), 'hex')
    FROM public.archive_lexemes(configuration, '{PROBE}', true) AS probe
$function$
"""

# Both halves of a rebuild: the caller holds the namespace and has set it to `rebuilding`, else words of two lexers would mix
# under a namespace that answers.
HELD_FOR_REBUILD = f"""
CREATE FUNCTION archive_held_for_rebuild(namespace bigint)
RETURNS regconfig
LANGUAGE plpgsql VOLATILE {PATH}
AS $function$
DECLARE
    held record;
BEGIN
    IF current_setting('lychd.hold', true) IS DISTINCT FROM 'exclusive' THEN
        RAISE EXCEPTION 'the namespace is not held exclusively' USING ERRCODE = 'LY005';
    END IF;
    SELECT text_configuration, lexical_state INTO held FROM public.archive_namespace WHERE id = namespace FOR UPDATE;
    IF NOT FOUND OR held.lexical_state <> 'rebuilding' THEN
        RAISE EXCEPTION 'the namespace is not being rebuilt' USING ERRCODE = 'LY005';
    END IF;
    RETURN held.text_configuration::regconfig;
END
$function$
"""

# The slice is a range of note numbers, so rows that no promoted note stands behind leave with it. A slice that comes up short
# reaches to the end.
REBUILD_SLICE = f"""
CREATE FUNCTION archive_rebuild_slice(namespace bigint, after_number bigint, at_most integer)
RETURNS TABLE (last_number bigint, notes integer)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {PATH}
AS $function$
DECLARE
    configuration regconfig := public.archive_held_for_rebuild(namespace);
    numbers bigint[];
    bodies text[];
    before bigint;
    now_is bigint;
BEGIN
    SELECT coalesce(array_agg(slice.note_number ORDER BY slice.note_number), '{{}}'),
           coalesce(array_agg(slice.text ORDER BY slice.note_number), '{{}}')
    INTO numbers, bodies
    FROM (
        SELECT note.note_number, note.text
        FROM public.archive_note AS note
        WHERE note.namespace_id = namespace AND note.state = 'promoted' AND note.text IS NOT NULL
          AND note.note_number > after_number
        ORDER BY note.note_number
        LIMIT greatest(at_most, 1)
    ) AS slice;
    notes := cardinality(numbers);
    last_number := CASE WHEN notes < greatest(at_most, 1) THEN 9223372036854775807 ELSE numbers[notes] END;

    WITH gone AS (
        DELETE FROM public.archive_posting AS posting
        WHERE posting.namespace_id = namespace AND posting.note_number > after_number AND posting.note_number <= last_number
        RETURNING posting.note_number, posting.length
    )
    SELECT coalesce(sum(per_note.length), 0) INTO before
    FROM (SELECT max(gone.length) AS length FROM gone GROUP BY gone.note_number) AS per_note;

    SELECT coalesce(sum(public.archive_postings_enter(namespace, entry.number, configuration, entry.body)), 0) INTO now_is
    FROM unnest(numbers, bodies) AS entry (number, body);

    UPDATE public.archive_corpus AS corpus
    SET total_length = greatest(corpus.total_length + now_is - before, 0)
    WHERE corpus.namespace_id = namespace;
    RETURN NEXT;
END
$function$
"""

# Reads the figures off the truth again and says what they were, so that drift is seen and does not stay.
REBUILD_FINISH = f"""
CREATE FUNCTION archive_rebuild_finish(namespace bigint)
RETURNS TABLE (notes bigint, total_length bigint, notes_before bigint, total_length_before bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER {PATH}
AS $function$
BEGIN
    PERFORM public.archive_held_for_rebuild(namespace);
    SELECT corpus.notes, corpus.total_length INTO notes_before, total_length_before
    FROM public.archive_corpus AS corpus WHERE corpus.namespace_id = namespace;
    notes_before := coalesce(notes_before, 0);
    total_length_before := coalesce(total_length_before, 0);

    SELECT count(*), coalesce(sum(found.length), 0) INTO notes, total_length
    FROM public.archive_note AS note
    LEFT JOIN LATERAL (
        SELECT posting.length FROM public.archive_posting AS posting
        WHERE posting.namespace_id = namespace AND posting.note_number = note.note_number
        LIMIT 1
    ) AS found ON true
    WHERE note.namespace_id = namespace AND note.state = 'promoted' AND note.text IS NOT NULL;

    INSERT INTO public.archive_corpus AS corpus (namespace_id, notes, total_length)
    VALUES (namespace, notes, total_length)
    ON CONFLICT ON CONSTRAINT archive_corpus_pkey
    DO UPDATE SET notes = excluded.notes, total_length = excluded.total_length;
    RETURN NEXT;
END
$function$
"""

DEFINERS = (
    "archive_note_postings()",
    "archive_rebuild_slice(bigint, bigint, integer)",
    "archive_rebuild_finish(bigint)",
)

REFUSE_WITH_ROWS = """
DO $block$
BEGIN
    IF EXISTS (SELECT FROM archive_posting) OR EXISTS (SELECT FROM archive_corpus WHERE notes > 0) THEN
        RAISE EXCEPTION 'postings exist; this migration is undone on empty tables only' USING ERRCODE = 'LY004';
    END IF;
END
$block$
"""


class Migration(migrations.Migration):
    """Make a promoted note findable by its words, and only while it is promoted."""

    dependencies = [("archive", "0001_truth")]

    # Undone from the last to the first, so the refusal stands last.
    operations: ClassVar[list[Operation]] = [
        migrations.RunSQL(POSTING_TABLE, "DROP TABLE archive_posting"),
        migrations.RunSQL(POSTING_INDEX, "DROP INDEX archive_posting_note"),
        migrations.RunSQL(POSTING_STATISTICS, migrations.RunSQL.noop),
        migrations.RunSQL(CORPUS_TABLE, "DROP TABLE archive_corpus"),
        migrations.RunSQL(COUNTS, "DROP FUNCTION archive_lexeme_counts(regconfig, text)"),
        migrations.RunSQL(LEXEMES, "DROP FUNCTION archive_lexemes(regconfig, text, boolean)"),
        migrations.RunSQL(ENTER, "DROP FUNCTION archive_postings_enter(bigint, bigint, regconfig, text)"),
        migrations.RunSQL(TRIGGER_FUNCTION, "DROP FUNCTION archive_note_postings()"),
        migrations.RunSQL(TRIGGER, "DROP TRIGGER postings ON archive_note"),
        migrations.RunSQL(FINGERPRINT, "DROP FUNCTION archive_lexer_fingerprint(regconfig)"),
        migrations.RunSQL(HELD_FOR_REBUILD, "DROP FUNCTION archive_held_for_rebuild(bigint)"),
        migrations.RunSQL(REBUILD_SLICE, "DROP FUNCTION archive_rebuild_slice(bigint, bigint, integer)"),
        migrations.RunSQL(REBUILD_FINISH, "DROP FUNCTION archive_rebuild_finish(bigint)"),
        *(migrations.RunSQL(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC", migrations.RunSQL.noop) for name in DEFINERS),
        migrations.RunSQL(migrations.RunSQL.noop, REFUSE_WITH_ROWS),
    ]
