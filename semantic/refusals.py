"""What semantic recall and derivation refuse, in the kinds of the archive (specification 5.13)."""

from typing import ClassVar

from archive.refusals import Absent, Broken, Conflict, Invalid, Unavailable

# --- 404 -------------------------------------------------------------------------------------------------------------


class GenerationAbsent(Absent):
    code = "generation_absent"
    title = "This generation is not registered here"
    detail = "Nothing registers a generation by itself. An operator can do it with `lychd generation register`."


class DerivationAbsent(Absent):
    code = "derivation_absent"
    title = "No such derivation"
    detail = "Prepare the note first; preparing twice gives the same derivation."


# --- 409 -------------------------------------------------------------------------------------------------------------


class GenerationConflict(Conflict):
    code = "generation_conflict"
    title = "This generation reference was registered with another manifest"
    detail = "A manifest never changes. Configure the changed embedder under a new generation reference."


class GenerationRetired(Conflict):
    code = "generation_retired"
    title = "This generation is retired"
    detail = "Retiring cannot be undone. Configure, register and derive a new generation reference."


class GenerationMismatch(Conflict):
    code = "generation_mismatch"
    title = "The registered generation is not the configured one"
    detail = (
        "Its manifest differs from today's configuration or binding. Put the configuration back, or register a new "
        "generation reference and derive it."
    )


class SourceNotEligible(Conflict):
    code = "source_not_eligible"
    title = "Only a promoted note can be derived"
    detail = "Read the record to see its state. A candidate can be promoted first; the others cannot come back."


class DerivationNotClaimable(Conflict):
    code = "derivation_not_claimable"
    title = "Somebody else has this derivation, or it is not where you saw it"
    detail = (
        "Read its status. A failed or expired attempt is taken up again only by asking for a retry with the row "
        "version that you then see."
    )


class DerivationInvalidated(Conflict):
    code = "derivation_invalidated"
    title = "This derivation was invalidated for good"
    detail = "Its note was withdrawn or replaced, or its generation retired. Derive the note that stands now."


class AttemptFenced(Conflict):
    code = "attempt_fenced"
    title = "This attempt came too late"
    detail = (
        "Its time was over, or its note, generation or claim changed meanwhile; nothing was stored. Read the status."
    )


# --- 422 -------------------------------------------------------------------------------------------------------------


class ModelInputOversize(Invalid):
    status: ClassVar[int] = 422
    code = "model_input_oversize"
    title = "The text is longer than the model reads"
    detail = (
        "Nothing was cut and nothing embedded. The note stays found by its words; take it in again in shorter parts."
    )


# --- 500 -------------------------------------------------------------------------------------------------------------


class EmbeddingOutputInvalid(Broken):
    code = "embedding_output_invalid"
    title = "The embedder gave something that is no embedding"
    detail = "Nothing was stored. An operator should compare the model's files with the generation's manifest."


class LeaseCleanupFailed(Broken):
    code = "lease_cleanup_failed"
    title = "The embedding lease could not be given back"
    detail = "Nothing was published. Ask again; if it lasts, an operator should look at the worker's broker."


# --- 503, 504 --------------------------------------------------------------------------------------------------------


class CoordinationUnavailable(Unavailable):
    code = "coordination_unavailable"
    title = "The coordination service does not answer"
    detail = (
        "Nothing was changed. Try again; if it lasts, an operator should look at the worker's broker (`REDIS_URL`)."
    )


class LeaseUnavailable(Unavailable):
    code = "lease_unavailable"
    title = "All embedding leases are taken"
    detail = (
        "Nothing was changed. Try again in a moment; with `LYCHD_COORDINATION=process` one process alone embeds, "
        "until it ends."
    )


class EmbeddingCancelled(Unavailable):
    code = "embedding_cancelled"
    title = "The embedding was cancelled"
    detail = "Nothing was published. Ask again if it is still wanted."


class EmbeddingTimeout(Unavailable):
    status: ClassVar[int] = 504
    code = "embedding_timeout"
    title = "The embedder took too long"
    detail = "Nothing was published. Ask again; whether to do so is your decision, nothing repeats it."


class DerivationOff(Unavailable):
    code = "derivation_off"
    title = "Derivation is switched off"
    detail = (
        "Set `LYCHD_DERIVATION_GENERATION` and `LYCHD_DERIVATION_EMBEDDER`; a namespace that was configured to have no "
        "generation gets one by `lychd namespace configure`. Recall by words needs neither."
    )


class SemanticOff(Unavailable):
    code = "semantic_off"
    title = "Semantic recall is switched off"
    detail = "Set `LYCHD_SEMANTIC=true` where derivation is configured; recall by words needs neither."
