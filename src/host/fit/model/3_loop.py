

# ---- optimizers -------------------------------------------------------------------------------------------------------------

class AdamW8bit(torch.optim.Optimizer):
    """The storages of bitsandbytes' AdamW8bit: two states of a byte for each value, a scale for 256; small parameters keep fp32.
    Its kernel makes nothing."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-4})

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None or self.state[parameter]:
                    continue
                elements = parameter.numel()
                small = elements < 4096
                for name in ("state1", "state2"):
                    self.state[parameter][name] = torch.zeros_like(parameter, dtype=torch.float32 if small else torch.uint8)
                    if not small:
                        self.state[parameter]["absmax_" + name] = torch.zeros((elements + 255) // 256, dtype=torch.float32, device="cuda")


def make_optimizer(parameters):
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    note("trained", format(sum(parameter.numel() for parameter in parameters), ","))
    if SPEC["optimizer"] == "adamw8bit":
        return AdamW8bit(parameters)
    if SPEC["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, lr=1e-3)
    if SPEC["optimizer"] == "adamw-foreach":
        return torch.optim.AdamW(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, fused=True)


def train(model, loss_of):
    model.train()
    optimizer = make_optimizer(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=AUTOCAST == torch.float16)
    for _ in range(STEPS + 1):
        with torch.autocast("cuda", dtype=AUTOCAST or torch.bfloat16, enabled=AUTOCAST is not None):
            loss = loss_of()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        del loss


def built(model, by):
    note("built", "{}, {:,}, {}".format(type(model).__name__, count(model), by))
    written = SPEC.get("parameters") or 0
    there = count(model)
    # Tied weights are written once; a checkpoint may hold what training leaves out.
    if written and abs(there - written) > 0.02 * there:
        note("count", "{:,} / {:,}".format(written, there))


# ---- transformers -----------------------------------------------------------------------------------------------------------

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
    inputs = {"input_ids": torch.randint(0, vocabulary, (BATCH, length)), "attention_mask": torch.ones(BATCH, length, dtype=torch.int64)}
    if name.endswith(("ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration", "ForPreTraining")):
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
    model.cuda()
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
