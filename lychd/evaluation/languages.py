"""Language tags of the sets, and what Snowball and PostgreSQL call the language."""

from typing import Final

# Tags that PostgreSQL 18 ships no configuration for (Chinese, Japanese, Korean, Thai, Persian ...) are left out.
_CONFIGURATIONS: Final = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}

# A set that names no language is English; every one of the published sets is.
UNNAMED: Final = "en"


def snowball(language: str | None) -> str | None:
    """Name the Snowball language of a tag such as `de` or `pt_BR`; None where there is none."""
    return _CONFIGURATIONS.get((language or UNNAMED).replace("-", "_").split("_")[0].lower())


def text_configuration(language: str | None) -> str:
    """Name the text search configuration of a tag; `simple` where PostgreSQL has none."""
    return snowball(language) or "simple"
