# SPDX-License-Identifier: Apache-2.0
"""Point cloud classification with DGCNN; the test votes over several scalings, larger test batch, sklearn scores."""
import argparse
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn import metrics
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class ModelNetLike(Dataset):
    def __init__(self, num, num_points, partition="train"):
        rng = np.random.RandomState(0 if partition == "train" else 1)
        self.label = rng.randint(0, 40, num)
        self.data = rng.randn(num, num_points, 3).astype("float32")
        self.data /= np.linalg.norm(self.data, axis=-1, keepdims=True) / (1 + 0.3 * np.sin(self.label[:, None, None]))
        self.data = self.data.astype("float32")
        self.partition = partition

    def __getitem__(self, item):
        pc = self.data[item]
        if self.partition == "train":
            pc = (pc * np.random.uniform(2 / 3, 3 / 2, 3) + np.random.uniform(-0.2, 0.2, 3)).astype("float32")
            np.random.shuffle(pc)
        return pc, self.label[item]

    def __len__(self):
        return len(self.data)


def knn(x, k):
    inner = -2 * torch.matmul(x.transpose(2, 1), x)
    xx = torch.sum(x ** 2, dim=1, keepdim=True)
    pairwise_distance = -xx - inner - xx.transpose(2, 1)
    return pairwise_distance.topk(k=k, dim=-1)[1]


def get_graph_feature(x, k=20):
    batch_size, num_dims, num_points = x.size()
    idx = knn(x, k=k)
    idx_base = torch.arange(0, batch_size, device=x.device).view(-1, 1, 1) * num_points
    idx = (idx + idx_base).view(-1)
    x = x.transpose(2, 1).contiguous()
    feature = x.view(batch_size * num_points, -1)[idx, :]
    feature = feature.view(batch_size, num_points, k, num_dims)
    x = x.view(batch_size, num_points, 1, num_dims).repeat(1, 1, k, 1)
    return torch.cat((feature - x, x), dim=3).permute(0, 3, 1, 2).contiguous()


class DGCNN(nn.Module):
    def __init__(self, k, emb_dims, width=64, classes=40):
        super().__init__()
        self.k = k
        self.convs = nn.ModuleList()
        for i, o in ((6, width), (2 * width, width), (2 * width, 2 * width), (4 * width, 4 * width)):
            self.convs.append(nn.Sequential(nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2)))
        self.conv5 = nn.Sequential(nn.Conv1d(8 * width, emb_dims, 1, bias=False), nn.BatchNorm1d(emb_dims), nn.LeakyReLU(0.2))
        self.head = nn.Sequential(nn.Linear(emb_dims * 2, 512, bias=False), nn.BatchNorm1d(512), nn.LeakyReLU(0.2), nn.Dropout(0.5),
                                  nn.Linear(512, 256), nn.BatchNorm1d(256), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(256, classes))

    def forward(self, x):
        outs = []
        for conv in self.convs:
            x = conv(get_graph_feature(x, self.k)).max(dim=-1)[0]
            outs.append(x)
        x = self.conv5(torch.cat(outs, 1))
        return self.head(torch.cat([F.adaptive_max_pool1d(x, 1).squeeze(-1), F.adaptive_avg_pool1d(x, 1).squeeze(-1)], 1))


def cal_loss(pred, gold, eps=0.2):
    n_class = pred.size(1)
    one_hot = torch.zeros_like(pred).scatter(1, gold.view(-1, 1), 1)
    one_hot = one_hot * (1 - eps) + (1 - one_hot) * eps / (n_class - 1)
    return -(one_hot * F.log_softmax(pred, dim=1)).sum(dim=1).mean()


def main():
    parser = argparse.ArgumentParser(description="Point Cloud Recognition")
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--test-batch-size", type=int, default=32)
    parser.add_argument("--votes", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    points, k = (64, 5) if SMALL else (1024, 20)
    if SMALL:
        args.batch_size = args.test_batch_size = 4
    train_loader = DataLoader(ModelNetLike(args.batch_size * 6, points), batch_size=args.batch_size, shuffle=True, drop_last=True, num_workers=0 if SMALL else 4)
    test_loader = DataLoader(ModelNetLike(args.test_batch_size * 2, points, "test"), batch_size=args.test_batch_size)
    model = DGCNN(k, 64 if SMALL else 1024, 8 if SMALL else 64).to(device)
    opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(opt, 2, eta_min=1e-3)
    for epoch in range(2):
        model.train()
        train_loss, count, train_pred, train_true = 0.0, 0.0, [], []
        for data, label in train_loader:
            data, label = data.to(device), label.to(device).squeeze()
            data = data.permute(0, 2, 1)
            opt.zero_grad()
            logits = model(data)
            loss = cal_loss(logits, label)
            loss.backward()
            opt.step()
            preds = logits.max(dim=1)[1]
            count += len(data)
            train_loss += loss.item() * len(data)
            train_true.append(label.cpu().numpy())
            train_pred.append(preds.detach().cpu().numpy())
        scheduler.step()
        print("Train %d, loss: %.6f, train acc: %.6f" % (epoch, train_loss / count, metrics.accuracy_score(np.concatenate(train_true), np.concatenate(train_pred))))
        model.eval()
        test_pred, test_true = [], []
        with torch.no_grad():
            for data, label in test_loader:
                data = data.to(device).permute(0, 2, 1)
                votes = 0
                for v in range(args.votes):
                    scale = 1.0 if v == 0 else torch.empty(1, 3, 1, device=device).uniform_(0.8, 1.2)
                    votes = votes + F.softmax(model(data * scale), dim=1)
                test_true.append(label.numpy())
                test_pred.append(votes.argmax(1).cpu().numpy())
        t, p = np.concatenate(test_true), np.concatenate(test_pred)
        print("Test %d, acc: %.6f, balanced: %.6f" % (epoch, metrics.accuracy_score(t, p), metrics.balanced_accuracy_score(t, p)))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print("RESULT", s["allocated_bytes.all.peak"], s["reserved_bytes.all.peak"])
