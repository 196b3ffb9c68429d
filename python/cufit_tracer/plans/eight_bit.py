# SPDX-License-Identifier: Apache-2.0
"""An optimizer whose states are of eight bits."""

from .work import tell_moved


# As AdamW8bit of bitsandbytes: of a parameter of 4,096 elements and more two states of a byte per
# element, and for each 256 of these a largest value in fp32; nothing else is made. The Trainer
# keeps states of embeddings in fp32.
def eight_bit_step(tracer):
    torch = tracer.torch
    tables = []

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        whole = set()
        if tracer.variant.framework() == "trainer":
            whole = {
                id(module.weight)
                for module in list(tracer.names)
                if isinstance(module, torch.nn.Embedding)
            }
        with torch.no_grad():
            for parameter in (
                p for group in self.param_groups for p in group["params"] if p.grad is not None
            ):
                state = self.state[parameter]
                small = parameter.numel() < 4096 or id(parameter) in whole
                if not state:
                    state["step"] = 0
                    for name in ("state1", "state2"):
                        state[name] = torch.zeros_like(
                            parameter, dtype=torch.float32 if small else torch.uint8
                        )
                    if not small:
                        if not tables:
                            tables.extend(torch.zeros(256, device="cuda") for _ in range(2))
                        for name in ("absmax1", "absmax2"):
                            state[name] = torch.zeros(
                                (parameter.numel() + 255) // 256, device="cuda"
                            )
                if tracer.counting:
                    each = 3 * parameter.element_size() + (16 if small else 4)
                    tell_moved(tracer, "adamw8bit", parameter.numel() * each, 1)
        return loss

    return step
