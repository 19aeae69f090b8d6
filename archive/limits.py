"""Every bound and constant of the archive (specification 5.1). Tests import these, never repeat them."""

from typing import Final

PROFILE: Final = "local-public-notes@1"
CLASSIFICATION: Final = "public"
LEXICAL_POLICY: Final = "postgres-bm25@1"
DEFAULT_TEXT_CONFIGURATION: Final = "simple"

# Identifiers. Keys that stand in addresses have no slash (0.13).
IDENTIFIER_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z"
ADDRESS_KEY_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z"
REFERENCE_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,2047}\Z"
# A Pattern of the admission engine, by name and version.
PATTERN_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,111}@[0-9]{1,9}\Z"
IDENTIFIER_MAX: Final = 128
KIND_MAX: Final = 64
REFERENCE_MAX: Final = 2_048
MIGRATION_REASON_MAX: Final = 512

# Text and queries.
NOTE_TEXT_MAX_CHARS: Final = 16_384
NOTE_TEXT_MAX_BYTES: Final = 65_536
QUERY_MAX_CHARS: Final = 1_024
# No language needs thirty (Unicode's Stream-Safe Text). PostgreSQL puts a run of marks in order in quadratic time, deaf
# to every time-out: one note of marks alone would hold its namespace for half a minute when it is promoted.
MARKS_IN_A_ROW_MAX: Final = 64

# Recall budgets.
TOP_K_MIN: Final = 1
TOP_K_DEFAULT: Final = 5
TOP_K_MAX: Final = 20
CHAR_BUDGET_MIN: Final = 1
CHAR_BUDGET_DEFAULT: Final = 16_384
CHAR_BUDGET_MAX: Final = 65_536
MIN_RANK_DEFAULT: Final = 0.0

# BM25 (0.4).
BM25_K1: Final = 1.2
BM25_B: Final = 0.75
CUT_OFF_NOTES: Final = 1_000
CUT_OFF_SHARE: Final = 0.5
# How the ranking saves work; neither changes an answer (archive/lexical.py says why). The second is at most 1.
GLANCE_POSTINGS: Final = 300
UNDECIDED_SHARE: Final = 0.8

# Lists and batches.
PAGE_SIZE_DEFAULT: Final = 50
PAGE_SIZE_MAX: Final = 100
BATCH_INTAKE_MAX: Final = 500
BATCH_TRANSITION_MAX: Final = 200
SLICE_ITEMS: Final = 50
SLICE_WORDS: Final = 16_384

# Bodies.
BODY_MAX_BYTES: Final = 256 * 1024
BATCH_BODY_MAX_BYTES: Final = 8 * 1024 * 1024
BODY_MAX_DEPTH: Final = 32
INTEGER_MAX: Final = 2**53 - 1

# Authority is asked while the namespace is held, so an answer has to come soon (5.5).
AUTHORITY_ANSWER_SECONDS: Final = 0.5
# Questions to an authorizer of one's own at once, those that it never answered among them.
AUTHORITY_ASKED_AT_ONCE: Final = 48

# Tokens.
TOKEN_LIFETIME_DAYS_DEFAULT: Final = 90
TOKEN_LIFETIME_DAYS_MAX: Final = 365
TOKEN_ENDS_SOON_DAYS: Final = 14
TOKEN_ENDS_SOON_SHARE: Final = 4
TOKEN_LAST_USE_SECONDS: Final = 600
TOKEN_ROTATION_OVERLAP_SECONDS_DEFAULT: Final = 3_600
