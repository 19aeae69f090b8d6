"""Every bound and constant of the archive (specification 5.1). Tests import these, never repeat them."""

from typing import Final

PROFILE: Final = "local-public-notes@1"
CLASSIFICATION: Final = "public"
LEXICAL_POLICY: Final = "postgres-bm25@1"
DEFAULT_TEXT_CONFIGURATION: Final = "simple"
TEXT_CONFIGURATION_PATTERN: Final = r"[A-Za-z_][A-Za-z0-9_.]{0,127}"

# Identifiers. Keys that stand in addresses have no slash (0.13).
IDENTIFIER_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}\Z"
ADDRESS_KEY_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z"
KIND_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}\Z"
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
# What is sorted so: every code point that begins, once decomposed, with a combining class other than zero (Unicode 16,
# as PostgreSQL 18 has it), and the rest of two blocks that still grow. Fixed, so that no Python decides what is taken.
MARKS: Final = (
    "0300-034E 0350-036F 0483-0487 0591-05BD 05BF 05C1-05C2 05C4-05C5 05C7 0610-061A 064B-065F 0670 06D6-06DC "
    "06DF-06E4 06E7-06E8 06EA-06ED 0711 0730-074A 07EB-07F3 07FD 0816-0819 081B-0823 0825-0827 0829-082D 0859-085B "
    "0897-089F 08CA-08E1 08E3-08FF 093C 094D 0951-0954 09BC 09CD 09FE 0A3C 0A4D 0ABC 0ACD 0B3C 0B4D 0BCD 0C3C 0C4D "
    "0C55-0C56 0CBC 0CCD 0D3B-0D3C 0D4D 0DCA 0E38-0E3A 0E48-0E4B 0EB8-0EBA 0EC8-0ECB 0F18-0F19 0F35 0F37 0F39 "
    "0F71-0F75 0F7A-0F7D 0F80-0F84 0F86-0F87 0FC6 1037 1039-103A 108D 135D-135F 1714-1715 1734 17D2 17DD 18A9 "
    "1939-193B 1A17-1A18 1A60 1A75-1A7C 1A7F 1AB0-1AFF 1B34 1B44 1B6B-1B73 1BAA-1BAB 1BE6 1BF2-1BF3 1C37 1CD0-1CD2 "
    "1CD4-1CE0 1CE2-1CE8 1CED 1CF4 1CF8-1CF9 1DC0-1DFF 20D0-20DC 20E1 20E5-20F0 2CEF-2CF1 2D7F 2DE0-2DFF 302A-302F "
    "3099-309A A66F A674-A67D A69E-A69F A6F0-A6F1 A806 A82C A8C4 A8E0-A8F1 A92B-A92D A953 A9B3 A9C0 AAB0 AAB2-AAB4 "
    "AAB7-AAB8 AABE-AABF AAC1 AAF6 ABED FB1E FE20-FE2F FF9E-FF9F 101FD 102E0 10376-1037A 10A0D 10A0F 10A38-10A3A "
    "10A3F 10AE5-10AE6 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFA-10EFF 10F46-10F50 10F82-10F85 11046 11070 1107F "
    "110B9-110BA 11100-11102 11133-11134 11173 111C0 111CA 11235-11236 112E9-112EA 1133B-1133C 1134D 11366-1136C "
    "11370-11374 113CE-113D0 11442 11446 1145E 114C2-114C3 115BF-115C0 1163F 116B6-116B7 1172B 11839-1183A "
    "1193D-1193E 11943 119E0 11A34 11A47 11A99 11C3F 11D42 11D44-11D45 11D97 11F41-11F42 1612F 16AF0-16AF4 "
    "16B30-16B36 16FF0-16FF1 1BC9E 1D165-1D169 1D16D-1D172 1D17B-1D182 1D185-1D18B 1D1AA-1D1AD 1D242-1D244 "
    "1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF "
    "1E5EE-1E5EF 1E8D0-1E8D6 1E944-1E94A"
)

# What shows nothing: every code point of the categories Z, Cc and Cf (Unicode 14). Later versions know more of them. A
# text is blank for the archive where it is blank for its Python; the database refuses what is blank for every Python.
BLANKS: Final = (
    "0000-0020 007F-00A0 00AD 0600-0605 061C 06DD 070F 0890-0891 08E2 1680 180E 2000-200F 2028-202F 205F-2064 "
    "2066-206F 3000 FEFF FFF9-FFFB 110BD 110CD 13430-13438 1BCA0-1BCA3 1D173-1D17A E0001 E0020-E007F"
)

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
TOKEN_NAMESPACES_MAX: Final = 1_000
TOKEN_LAST_USE_SECONDS: Final = 600
TOKEN_ROTATION_OVERLAP_SECONDS_DEFAULT: Final = 3_600
