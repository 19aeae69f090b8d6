"""A local sentence-transformers model: from its folder alone, offline, one thread, whole texts or none.

The libraries are imported when the model is first opened, in the process that embeds and in no other. What lies in the
folder has to be what the binding says: its weights and its tokenizer are digested before they are used.
"""

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from archive.refusals import CapabilityNotReady
from semantic import limits
from semantic.embedders.port import Driver, Embedded, Item, Kind, Measure
from semantic.leases import Lease
from semantic.manifest import embed_binding_digest
from semantic.presets import MINILM, MINILM_PACKAGE

WEIGHTS: Final = "model.safetensors"
TOKENIZER: Final = "tokenizer.json"
_TOGETHER: Final = 8
"""Texts of one forward pass; longer runs gain nothing on a processor."""

_guard = threading.Lock()
_loaded: dict[str, Any] = {}


class SentenceTransformers:
    """Opens the model that the binding describes; the second time in a process it is there already."""

    def __init__(self, embed_binding: Mapping[str, Any]) -> None:
        self._binding = dict(embed_binding)

    def open(self, lease: Lease) -> Driver:
        digest = embed_binding_digest(self._binding)
        with _guard:
            if digest not in _loaded:
                _loaded.clear()
                _loaded[digest] = _load(self._binding)
        return _LocalDriver(self._binding, digest, _loaded[digest])


class _LocalDriver:
    def __init__(self, embed_binding: dict[str, Any], digest: str, model: Any) -> None:
        self._binding = embed_binding
        self._digest = digest
        self._model = model

    def measure(self, item: Item, kind: Kind) -> Measure:
        rendered = self._rendered(item, kind)
        counted = self._model.tokenizer(rendered, truncation=False, verbose=False)["input_ids"]
        return Measure(len(rendered.encode("utf-8")), len(counted))

    def embed(self, items: Sequence[Item], kind: Kind) -> Sequence[Embedded]:
        measured = [self.measure(item, kind) for item in items]
        if any(one.tokens > self._model.max_seq_length for one in measured):
            # The library would cut it and say nothing.
            raise ValueError("a text is longer than the model reads")
        found = self._model.encode(
            [self._rendered(item, kind) for item in items],
            batch_size=_TOGETHER,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return [
            Embedded(item.item_id, vector.astype("<f4").tobytes(), one.tokens, one.rendered_bytes, self._digest)
            for item, vector, one in zip(items, found, measured, strict=True)
        ]

    def close(self) -> None:
        """The model stays for the next lease of this process; nothing of a text does."""

    def _rendered(self, item: Item, kind: Kind) -> str:
        return f"{self._binding['document_prefix' if kind is Kind.DOCUMENT else 'query_prefix']}{item.text}"


def folder_of(embed_binding: Mapping[str, Any]) -> Path:
    """Where the model lies: the configured folder, or the package that carries the small one."""
    if settings.LYCHD_MODEL_PATH:
        return Path(settings.LYCHD_MODEL_PATH).expanduser()
    package = find_spec(MINILM_PACKAGE)
    if embed_binding["model"] != MINILM["model"] or package is None or not package.submodule_search_locations:
        raise CapabilityNotReady
    return Path(package.submodule_search_locations[0]) / "model"


def describe(
    folder: Path, *, model: str, revision: str, document_prefix: str = "", query_prefix: str = ""
) -> dict[str, Any]:
    """Describe a model's folder as an embedder's binding: digests of its files, its window, how it is padded."""
    transformer = _model_of(folder)
    width = transformer.get_embedding_dimension()
    dimensions = limits.PROFILE_DIMENSIONS[limits.EMBED_PROFILE]
    if width > dimensions:
        raise ValueError(f"the model has {width} dimensions, the profile {dimensions}")
    return {
        "provider": "sentence-transformers",
        "model": model,
        "model_revision": revision,
        "model_digest": _digest_of(folder / WEIGHTS),
        "tokenizer_digest": _digest_of(folder / TOKENIZER),
        "document_prefix": document_prefix,
        "query_prefix": query_prefix,
        "max_bytes": limits.EMBED_MAX_BYTES,
        "max_tokens": min(_window(transformer), limits.EMBED_MAX_TOKENS),
        "padding": None if width == dimensions else {"from": width, "to": dimensions, "by": "zeros-after-normalize"},
    }


def _load(embed_binding: dict[str, Any]) -> Any:
    folder = folder_of(embed_binding)
    for name, key in ((WEIGHTS, "model_digest"), (TOKENIZER, "tokenizer_digest")):
        if _digest_of(folder / name) != embed_binding[key]:
            raise CapabilityNotReady
    model = _model_of(folder)
    if embed_binding["max_tokens"] > _window(model):
        raise CapabilityNotReady
    model.max_seq_length = embed_binding["max_tokens"]
    _pad(model, embed_binding["padding"])
    return model


def _model_of(folder: Path) -> Any:
    # Before the import: the libraries read it once.
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise CapabilityNotReady from None
    # Threads that wait for each other are slower than one as soon as anybody else works here.
    torch.set_num_threads(1)
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def _window(model: Any) -> int:
    """How many tokens the model has positions for; its own setting may stop earlier."""
    return int(getattr(model[0].auto_model.config, "max_position_embeddings", model.max_seq_length))


def _pad(model: Any, padding: Mapping[str, Any] | None) -> None:
    """Add zeros behind what the model gives, by a stock module after its normalisation: cosine and length stay."""
    if padding is None:
        return
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    width, wide = int(padding["from"]), int(padding["to"])
    if model.get_embedding_dimension() != width:
        raise CapabilityNotReady
    dense = Dense(width, wide, bias=False, activation_function=torch.nn.Identity())
    with torch.no_grad():
        dense.linear.weight.copy_(torch.cat([torch.eye(width), torch.zeros(wide - width, width)]))
    model.append(dense.eval())


def _digest_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        raise CapabilityNotReady from None
