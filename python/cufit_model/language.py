# SPDX-License-Identifier: Apache-2.0
"""Models of transformers."""

import json

import torch

from .four_bit import quantise
from .lora import lora_language
from .ranks import dealt_out
from .spec import BATCH, SPEC, WEIGHTS, needed, note, stop
from .training import built, train


def build_language():
    transformers = needed("transformers")
    with open(SPEC["config"], encoding="utf-8") as file:
        values = json.load(file)
    name = SPEC["architecture"]
    cls = getattr(transformers, name, None) if name.isidentifier() else None
    if not isinstance(cls, type) or not issubclass(cls, transformers.PreTrainedModel):
        stop("class", "%s (transformers %s)" % (name, transformers.__version__))
    values.pop("quantization_config", None)
    values.pop("auto_map", None)
    config = cls.config_class.from_dict(values)
    config.use_cache = False
    model = cls._from_config(config) if hasattr(cls, "_from_config") else cls(config)
    built(model, "transformers %s" % transformers.__version__)
    return model, config


def text_config(config):
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def language_batch(model, config):
    text = text_config(config)
    name = type(model).__name__
    if getattr(model, "main_input_name", "input_ids") == "pixel_values":
        size = SPEC["res"] or getattr(config, "image_size", 224)
        size = size if isinstance(size, int) else size[0]
        channels = getattr(config, "num_channels", 3)
        inputs = {"pixel_values": torch.rand(BATCH, channels, size, size)}
        if name.endswith("ForImageClassification"):
            inputs["labels"] = torch.randint(0, max(config.num_labels, 1), (BATCH,))
        return inputs
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        stop("class", "%s (%s)" % (name, model.main_input_name))
    length = SPEC["seq"]
    vocabulary = getattr(text, "vocab_size", 2) or 2
    inputs = {
        "input_ids": torch.randint(0, vocabulary, (BATCH, length)),
        "attention_mask": torch.ones(BATCH, length, dtype=torch.int64),
    }
    if name.endswith(
        ("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration", "ForPreTraining")
    ):
        inputs["labels"] = inputs["input_ids"].clone()
    elif name.endswith("ForSequenceClassification"):
        inputs["labels"] = torch.randint(0, max(config.num_labels, 1), (BATCH,))
    elif name.endswith("ForTokenClassification"):
        inputs["labels"] = torch.randint(0, max(config.num_labels, 1), (BATCH, length))
    return inputs


def train_language():
    model, config = build_language()
    base = model
    model.to(WEIGHTS)
    if SPEC["train"] == "qlora":
        quantise(model)
    if SPEC["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if SPEC["train"] != "full":
        model = lora_language(model, SPEC["rank"])
    model = dealt_out(model)
    most = getattr(text_config(config), "max_position_embeddings", None)
    if SPEC["seq"] and isinstance(most, int) and 0 < most < SPEC["seq"]:
        note("positions", "%d / %d" % (SPEC["seq"], most))
    asked = []

    def loss_of():
        inputs = {key: value.to("cuda") for key, value in language_batch(base, config).items()}
        out = model(**inputs)
        loss = getattr(out, "loss", None)
        if loss is None:
            if not asked:
                note("loss", type(base).__name__)
            asked.append(1)
            loss = out[0].float().mean()
        return loss

    train(model, loss_of)
