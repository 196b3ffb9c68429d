# SPDX-License-Identifier: Apache-2.0
"""Knowledge distillation: a large frozen teacher under no_grad, a small student, logits and one layer of features."""
import argparse
import os

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Student(nn.Module):
    def __init__(self, name, teacher_width, classes):
        super().__init__()
        self.net = timm.create_model(name, num_classes=classes)
        self.adapt = nn.Conv2d(self.net.num_features, teacher_width, 1)

    def forward(self, x):
        features = self.net.forward_features(x)
        return self.net.forward_head(features), self.adapt(features)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=96)
    parser.add_argument("--temperature", type=float, default=4.0)
    args = parser.parse_args()
    size = 64 if SMALL else 224
    teacher = timm.create_model("resnet26" if SMALL else "seresnext101_32x4d", num_classes=300).to(device).eval()
    for p in teacher.parameters():
        p.requires_grad_(False)
    student = Student("tinynet_a", teacher.num_features, 300).to(device)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    T = args.temperature
    for step in range(5):
        x, y = torch.randn(args.batch_size, 3, size, size).to(device), torch.randint(0, 300, (args.batch_size,)).to(device)
        with torch.autocast(device, torch.float16, enabled=device == "cuda"):
            with torch.no_grad():
                wide = teacher.forward_features(x)
                target = teacher.forward_head(wide)
            out, features = student(x)
            hard = F.cross_entropy(out, y)
            soft = F.kl_div(F.log_softmax(out / T, 1), F.softmax(target / T, 1), reduction="batchmean") * T * T
            hint = F.mse_loss(F.normalize(features.flatten(1)), F.normalize(wide.flatten(1)))
            loss = 0.3 * hard + 0.7 * soft + 10 * hint
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(f"{step} hard {hard.item():.3f} soft {soft.item():.3f} hint {hint.item():.5f}")


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
