

# ---- what is trained --------------------------------------------------------------------------------------------------------

class Lora(torch.nn.Module):
    """Two fp32 factors beside a frozen layer. Where the arithmetic is kohya's, the input goes into the first as it is; peft
    first makes it fp32."""

    def __init__(self, base, rank, cast):
        super().__init__()
        self.base_layer = base
        self.cast = cast
        if isinstance(base, torch.nn.Conv2d):
            self.down = torch.nn.Conv2d(base.in_channels, rank, base.kernel_size, base.stride, base.padding, bias=False)
            self.up = torch.nn.Conv2d(rank, base.out_channels, 1, bias=False)
        else:
            inside, outside = features(base)
            self.down = torch.nn.Linear(inside, rank, bias=False)
            self.up = torch.nn.Linear(rank, outside, bias=False)

    def forward(self, x, *args, **kwargs):
        result = self.base_layer(x)
        if self.cast:
            return result + self.up(self.down(x.to(self.down.weight.dtype))) * 2.0
        return result + self.up(self.down(x)) * 1.0 * 0.5


def features(layer):
    if hasattr(layer, "nf"):  # transformers' Conv1D
        return layer.weight.shape[0], layer.nf
    return layer.in_features, layer.out_features


def is_linear(layer):
    return isinstance(layer, torch.nn.Linear) or type(layer).__name__ == "Conv1D"


# Modules with their parents; `wanted` says which.
def replace(model, wanted, make):
    done = []
    for path, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            full = path + "." + name if path else name
            if wanted(full, child):
                setattr(parent, name, make(child))
                done.append(full)
    return done


def tell_targets(paths, how):
    names = []
    for path in paths:
        parts = [part for part in path.split(".") if not part.isdigit()]
        last = parts[-1] if len(parts[-1]) > 3 or len(parts) < 2 else ".".join(parts[-2:])
        if last not in names:
            names.append(last)
    note("lora_targets", "%d: %s (%s)" % (len(paths), ", ".join(sorted(names)[:16]) + (", ..." if len(names) > 16 else ""), how))


def lora_language(model, rank):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    targets = SPEC.get("lora_targets") or "all"
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    try:
        import peft
    except ImportError:
        peft = None
    if peft is not None:
        chosen = "all-linear" if targets == "all" else None if targets == "default" else targets.split(",")
        try:
            model = peft.get_peft_model(model, peft.LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules=chosen))
        except ValueError as error:
            stop("targets", error)
        paths = [name for name, module in model.named_modules() if hasattr(module, "lora_A") and hasattr(module, "base_layer")]
        prefix = "base_model.model."
        tell_targets([p[len(prefix):] if p.startswith(prefix) else p for p in paths], "peft " + peft.__version__)
        return model
    if targets == "default":
        stop("missing", "peft")
    names = None if targets == "all" else targets.split(",")
    wanted = lambda path, m: is_linear(m) and m is not head and (names is None or path.split(".")[-1] in names) and not isinstance(m, Lora)
    paths = replace(model, wanted, lambda m: Lora(m, rank, True))
    if not paths:
        stop("targets", targets)
    tell_targets(paths, "cufit")
    return model


# The layers that sd-scripts' networks.lora adapts: linear layers and 1x1 convolutions of the transformer blocks.
def lora_diffusion(model, rank):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    blocks = [path for path, module in model.named_modules() if type(module).__name__ in SPEC["lora_blocks"]]

    def wanted(path, module):
        fits = isinstance(module, torch.nn.Linear) or isinstance(module, torch.nn.Conv2d) and tuple(module.kernel_size) == (1, 1)
        return fits and any(path.startswith(block + ".") for block in blocks)

    paths = replace(model, wanted, lambda m: Lora(m, rank, False))
    if not paths:
        stop("targets", ", ".join(SPEC["lora_blocks"]))
    tell_targets(paths, ", ".join(SPEC["lora_blocks"]))
    return model


# ---- weights of four bits -------------------------------------------------------------------------------------------------

BLOCK, NESTED_BLOCK = 64, 256  # values to a scale, scales to a scale of scales: bitsandbytes' own


class FourBitMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer, bias):
        ctx.layer = layer
        return torch.nn.functional.linear(x, layer.whole(x.dtype), bias)

    @staticmethod
    def backward(ctx, grad):
        return grad.matmul(ctx.layer.whole(grad.dtype)), None, None


class Linear4bit(torch.nn.Linear):
    """NF4 with double quantisation: the storages of bitsandbytes' layer, and what it makes for the length of a product."""

    def __init__(self, base):
        inside, outside = features(base)
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = inside, outside
        elements = inside * outside
        make = lambda size, dtype: torch.empty(size, dtype=dtype, device="cuda")
        blocks = (elements + BLOCK - 1) // BLOCK
        self.weight = torch.nn.Parameter(make(((elements + 1) // 2, 1), torch.uint8), requires_grad=False)
        self.scales = make(blocks, torch.uint8)
        self.scales_of_scales = make((blocks + NESTED_BLOCK - 1) // NESTED_BLOCK, torch.float32)
        self.codes = make(16, torch.float32), make(256, torch.float32), make((), torch.float32)
        bias = getattr(base, "bias", None)
        self.bias = torch.nn.Parameter(bias.detach().to(AUTOCAST or WEIGHTS), requires_grad=False) if bias is not None else None

    def whole(self, dtype):
        scales = torch.empty(self.scales.shape, dtype=torch.float32, device="cuda")
        scales += self.codes[2]
        return torch.empty((self.out_features, self.in_features), dtype=dtype, device="cuda")

    def forward(self, x, *args, **kwargs):
        kind = x.dtype
        dtype = AUTOCAST or WEIGHTS
        bias = None if self.bias is None else self.bias.to(dtype)
        with torch.autocast("cuda", enabled=False):
            return FourBitMatmul.apply(x.to(dtype), self, bias).to(kind)


def quantise(model):
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    elements = []

    def make(layer):
        elements.append(layer.weight.numel())
        return Linear4bit(layer)

    paths = replace(model, lambda path, m: is_linear(m) and m is not head and not isinstance(m, Linear4bit), make)
    note("four_bit", "{:,} / {:,}".format(sum(elements), sum(elements) + sum(p.numel() for p in model.parameters() if p.dtype != torch.uint8)))
    # As peft's prepare_model_for_kbit_training: what is left in half precision becomes fp32; diffusers leaves it.
    for parameter in model.parameters():
        parameter.requires_grad_(False)
        if SPEC["library"] == "transformers" and parameter.dtype in (torch.float16, torch.bfloat16):
            parameter.data = parameter.data.to(torch.float32)
    return paths
