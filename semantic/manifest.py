"""What a generation is made of: one immutable description, its digest, and what the settings configure (R-L-162, 166).

Everything that decides about a vector's numbers or about what may be compared stands in the manifest, so a change of
the embedder is a new generation and nothing else (R-L-168). Reading the configuration touches no database and no model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from archive import bindings, canonical
from archive.bindings import Binding
from semantic import limits
from semantic.refusals import DerivationOff, SemanticOff

BINDING_KEYS: Final = (
    "provider",
    "model",
    "model_revision",
    "model_digest",
    "tokenizer_digest",
    "document_prefix",
    "query_prefix",
    "max_bytes",
    "max_tokens",
    "padding",
)
PADDING_KEYS: Final = ("from", "to", "by")


@dataclass(frozen=True)
class Configured:
    """The generation that the settings name for one namespace: its reference, manifest and digest.

    An operation asks for the digests at every step, so each is made once.
    """

    reference: str
    manifest: Mapping[str, Any]

    @cached_property
    def digest(self) -> str:
        return digest_of(self.manifest)

    @property
    def profile(self) -> str:
        return str(self.manifest["embed_profile"])

    @property
    def dimensions(self) -> int:
        return int(self.manifest["dimensions"])

    @property
    def kept_dimensions(self) -> int:
        return kept_dimensions(self.manifest)

    @property
    def embed_binding(self) -> dict[str, Any]:
        return dict(self.manifest["embed_binding"])

    @cached_property
    def embed_binding_digest(self) -> str:
        return embed_binding_digest(self.embed_binding)


def configured(binding: Binding) -> Configured:
    """Describe the configured generation of a namespace; refuses while derivation is off here (R-L-160)."""
    derivation = require_derivation()
    if binding.generation == bindings.NO_GENERATION:
        raise DerivationOff
    reference = derivation["generation"] if binding.generation is None else binding.generation
    profile = derivation["embed_profile"]
    return Configured(
        reference,
        {
            "reference": reference,
            "namespace": binding.namespace,
            "owner": binding.owner,
            "policy_revision": binding.policy_revision,
            "binding_digest": binding.digest,
            "embed_profile": profile,
            "embed_binding": {key: derivation["embed_binding"][key] for key in BINDING_KEYS},
            "chunking": limits.CHUNKING,
            "dimensions": limits.PROFILE_DIMENSIONS[profile],
            "metric": limits.METRIC,
            "storage": limits.STORAGE,
            "normalization": limits.NORMALIZATION,
            "l2_tolerance": canonical.real(limits.L2_TOLERANCE),
            "attempt_seconds": derivation["attempt_seconds"],
        },
    )


def require_derivation() -> dict[str, Any]:
    """Return the settings of derivation, or refuse while it is off."""
    derivation: dict[str, Any] | None = bindings.require_profile().get("derivation")
    if derivation is None:
        raise DerivationOff
    return derivation


def require_semantic() -> None:
    """Refuse while semantic recall is off; derivation alone gives no right to ask (R-L-212)."""
    if not bindings.require_profile().get("semantic"):
        raise SemanticOff


def kept_dimensions(manifest: Mapping[str, Any]) -> int:
    """How many places of a generation's vectors can be other than zero; padding fills the others, and no model does."""
    padding = manifest["embed_binding"]["padding"]
    return int(manifest["dimensions"] if padding is None else padding["from"])


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the digest of a manifest."""
    return canonical.digest_of(canonical.GENERATION, manifest)


def embed_binding_digest(embed_binding: Mapping[str, Any]) -> str:
    """Return the digest of the model, its files, prefixes and bounds: what an embedder has to say it is."""
    return canonical.digest_of(canonical.EMBED_BINDING, embed_binding)


def derivation_digest(
    *, namespace: str, reference: str, manifest_digest: str, source_key: str, source_revision: str, text_digest: str
) -> str:
    """Return the identity of one note in one generation (R-L-176)."""
    return canonical.digest_of(
        canonical.DERIVATION,
        {
            "namespace": namespace,
            "generation_reference": reference,
            "manifest_digest": manifest_digest,
            "source_key": source_key,
            "source_revision": source_revision,
            "text_digest": text_digest,
            "chunk": limits.CHUNKING,
        },
    )
