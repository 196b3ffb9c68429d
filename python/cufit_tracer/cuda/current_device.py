# SPDX-License-Identifier: Apache-2.0
"""Which of the node's GPUs is current. A rank uses one; what lies on another is counted with it."""


class CurrentDevice:
    def __init__(self, torch):
        self.torch, self.number = torch, 0

    def get(self):
        return self.number

    def set(self, device):
        number = self.torch.cuda._utils._get_device_index(device)
        if number >= 0:
            self.number = number

    # As CUDA's: the one before; below 0 nothing is changed.
    def exchange(self, number, *args):
        if number < 0:
            return -1
        before, self.number = self.number, number
        return before

    # "cuda" alone becomes cuda:0 within torch, which asks a guard that knows one GPU.
    def of_own(self, named):
        device = named.get("device")
        if not self.number or device is None:
            return named
        device = self.torch.device(device)
        if device.type != "cuda" or device.index:
            return named
        return dict(named, device=self.torch.device("cuda", self.number))
