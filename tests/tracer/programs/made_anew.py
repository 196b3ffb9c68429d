# SPDX-License-Identifier: Apache-2.0
"""Parameters without contents, made anew by their class as accelerate's `init_empty_weights` does;
then filled from a state dict, as `from_pretrained` does."""

import torch
from torch import nn

register = nn.Module.register_parameter


def register_empty(module, name, parameter):
    register(module, name, parameter)
    if parameter is not None:
        values = parameter.__dict__
        values["requires_grad"] = parameter.requires_grad
        module._parameters[name] = type(parameter)(parameter.to("meta"), **values)


nn.Module.register_parameter = register_empty
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128))
nn.Module.register_parameter = register
assert all(p.device.type == "meta" and p.requires_grad for p in model.parameters())
values = {name: torch.zeros(p.shape) for name, p in model.state_dict().items()}
model[0].load_state_dict({"weight": values["0.weight"], "bias": values["0.bias"]}, assign=True)
for name, p in list(model[2].named_parameters()):
    model[2]._parameters[name] = type(p)(data=values["2." + name], requires_grad=p.requires_grad)
model = model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(32, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
