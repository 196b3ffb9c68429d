# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 (He and others, 2015; the stride in the 3x3 convolution): 25.6 million parameters."""


def resnet50(torch):
    nn = torch.nn

    def convolution(inputs, outputs, size, stride=1):
        return [
            nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False),
            nn.BatchNorm2d(outputs),
        ]

    class Bottleneck(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width
            self.body = nn.Sequential(
                *convolution(inputs, width, 1),
                nn.ReLU(inplace=True),
                *convolution(width, width, 3, stride),
                nn.ReLU(inplace=True),
                *convolution(width, outputs, 1),
            )
            self.short = None
            if stride != 1 or inputs != outputs:
                self.short = nn.Sequential(*convolution(inputs, outputs, 1, stride))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            short = x if self.short is None else self.short(x)
            return self.relu(self.body(x) + short)

    layers = [*convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    inputs = 64
    for place, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(count):
            layers.append(Bottleneck(inputs, width, 2 if place and block == 0 else 1))
            inputs = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
    return nn.Sequential(*layers)
