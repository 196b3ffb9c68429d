"""GraphGPS (GINE + global attention) with random-walk encodings on molecular-like graphs, multi-label, PyG."""
import argparse
import os
import tempfile
import time

import torch
import torch.nn.functional as F
from sklearn.metrics import average_precision_score
from torch.nn import BatchNorm1d, Embedding, Linear, ModuleList, ReLU, Sequential
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv, global_mean_pool
from torch_geometric.transforms import AddRandomWalkPE

parser = argparse.ArgumentParser()
parser.add_argument("--channels", type=int, default=192)
parser.add_argument("--layers", type=int, default=8)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--n_train", type=int, default=960)
parser.add_argument("--max_nodes", type=int, default=260)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--attn", default="multihead")
args = parser.parse_args()
seed_everything(12)
transform = AddRandomWalkPE(walk_length=20, attr_name="pe")


def make_graphs(n, seed):
    g = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(n):
        num = int(torch.randint(args.max_nodes // 4, args.max_nodes, (1,), generator=g))
        parent = (torch.arange(1, num) - torch.randint(1, 4, (num - 1,), generator=g)).clamp(min=0)
        src, dst = torch.arange(1, num), parent
        extra = torch.randint(0, num, (2, num // 10), generator=g)
        ei = torch.cat([torch.stack([src, dst]), torch.stack([dst, src]), extra, extra.flip(0)], 1)
        data = Data(x=torch.randint(0, 28, (num, 1), generator=g), edge_index=ei, edge_attr=torch.randint(0, 4, (ei.size(1),), generator=g),
                    y=(torch.rand(1, 10, generator=g) < 0.2).float())
        graphs.append(transform(data))
    return graphs


train_loader = DataLoader(make_graphs(args.n_train, 0), batch_size=args.batch_size, shuffle=True)
val_loader = DataLoader(make_graphs(args.n_train // 6, 1), batch_size=args.batch_size)
test_loader = DataLoader(make_graphs(args.n_train // 6, 2), batch_size=args.batch_size)


class GPS(torch.nn.Module):
    def __init__(self, channels, pe_dim, num_layers, attn_type, attn_kwargs):
        super().__init__()
        self.node_emb = Embedding(28, channels - pe_dim)
        self.pe_lin = Linear(20, pe_dim)
        self.pe_norm = BatchNorm1d(20)
        self.edge_emb = Embedding(4, channels)
        self.convs = ModuleList()
        for _ in range(num_layers):
            mlp = Sequential(Linear(channels, channels), ReLU(), Linear(channels, channels))
            self.convs.append(GPSConv(channels, GINEConv(mlp), heads=args.heads, attn_type=attn_type, attn_kwargs=attn_kwargs))
        self.mlp = Sequential(Linear(channels, channels // 2), ReLU(), Linear(channels // 2, channels // 4), ReLU(), Linear(channels // 4, 10))

    def forward(self, x, pe, edge_index, edge_attr, batch):
        x = torch.cat((self.node_emb(x.squeeze(-1)), self.pe_lin(self.pe_norm(pe))), 1)
        edge_attr = self.edge_emb(edge_attr)
        for conv in self.convs:
            x = conv(x, edge_index, batch, edge_attr=edge_attr)
        return self.mlp(global_mean_pool(x, batch))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = GPS(args.channels, 16, args.layers, args.attn, {"dropout": 0.5}).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=1e-5)
scheduler = ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=20, min_lr=1e-5)


def train():
    model.train()
    total = 0
    for data in train_loader:
        data = data.to(device)
        optimizer.zero_grad()
        out = model(data.x, data.pe, data.edge_index, data.edge_attr, data.batch)
        loss = F.binary_cross_entropy_with_logits(out, data.y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        total += loss.item() * data.num_graphs
        optimizer.step()
    return total / len(train_loader.dataset)


@torch.no_grad()
def test(loader):
    model.eval()
    preds, ys = [], []
    for data in loader:
        data = data.to(device)
        out = model(data.x, data.pe, data.edge_index, data.edge_attr, data.batch)
        preds.append(out.sigmoid().cpu())
        ys.append(data.y.cpu())
    return average_precision_score(torch.cat(ys).numpy(), torch.cat(preds).numpy(), average="macro")


best, out_dir = 0, tempfile.mkdtemp()
for epoch in range(1, args.epochs + 1):
    t = time.time()
    loss = train()
    val_ap, test_ap = test(val_loader), test(test_loader)
    scheduler.step(val_ap)
    if val_ap > best:
        best = val_ap
        torch.save(model.state_dict(), os.path.join(out_dir, "best.pt"))
    print(f"Epoch: {epoch:02d}, Loss: {loss:.4f}, Val AP: {val_ap:.4f}, Test AP: {test_ap:.4f}, {time.time() - t:.1f}s")

if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
    print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
