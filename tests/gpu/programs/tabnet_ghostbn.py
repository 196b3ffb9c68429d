"""TabNet (after dreamquark-ai/tabnet): ghost batch norm, sparsemax masks, large batches, early stopping."""
import copy
import os
import tempfile

import numpy as np
import torch
from sklearn.metrics import log_loss, roc_auc_score
from torch.nn import BatchNorm1d, Linear
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset

N_ROWS, N_NUM = 160000, 48
CAT_DIMS = [1000, 300, 60, 24, 12, 7]
CAT_EMB = [16, 8, 8, 4, 4, 2]
BATCH_SIZE, VIRTUAL_BATCH = 16384, 512
MAX_EPOCHS, PATIENCE = 3, 2
N_D = N_A = 64
N_STEPS = 5
device = torch.device("cuda")


class SparsemaxFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, dim=-1):
        ctx.dim = dim
        max_val, _ = input.max(dim=dim, keepdim=True)
        input = input - max_val
        tau, supp_size = SparsemaxFunction._threshold_and_support(input, dim=dim)
        output = torch.clamp(input - tau, min=0)
        ctx.save_for_backward(supp_size, output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        supp_size, output = ctx.saved_tensors
        dim = ctx.dim
        grad_input = grad_output.clone()
        grad_input[output == 0] = 0
        v_hat = grad_input.sum(dim=dim) / supp_size.to(output.dtype).squeeze(dim)
        v_hat = v_hat.unsqueeze(dim)
        return torch.where(output != 0, grad_input - v_hat, grad_input), None

    @staticmethod
    def _threshold_and_support(input, dim=-1):
        input_srt, _ = torch.sort(input, descending=True, dim=dim)
        input_cumsum = input_srt.cumsum(dim) - 1
        rhos = torch.arange(1, input.size(dim) + 1, device=input.device, dtype=input.dtype).view(1, -1)
        support = rhos * input_srt > input_cumsum
        support_size = support.sum(dim=dim).unsqueeze(dim)
        tau = input_cumsum.gather(dim, support_size - 1)
        tau /= support_size.to(input.dtype)
        return tau, support_size


sparsemax = SparsemaxFunction.apply


def initialize_glu(module, i, o):
    gain = np.sqrt((i + o) / np.sqrt(i))
    torch.nn.init.xavier_normal_(module.weight, gain=gain)


class GBN(torch.nn.Module):
    def __init__(self, dim, virtual_batch_size=VIRTUAL_BATCH, momentum=0.02):
        super().__init__()
        self.virtual_batch_size = virtual_batch_size
        self.bn = BatchNorm1d(dim, momentum=momentum)

    def forward(self, x):
        chunks = x.chunk(int(np.ceil(x.shape[0] / self.virtual_batch_size)), 0)
        return torch.cat([self.bn(x_) for x_ in chunks], dim=0)


class GLU_Layer(torch.nn.Module):
    def __init__(self, i, o, fc=None):
        super().__init__()
        self.output_dim = o
        self.fc = fc if fc is not None else Linear(i, 2 * o, bias=False)
        initialize_glu(self.fc, i, 2 * o)
        self.bn = GBN(2 * o)

    def forward(self, x):
        x = self.bn(self.fc(x))
        return torch.mul(x[:, :self.output_dim], torch.sigmoid(x[:, self.output_dim:]))


class GLU_Block(torch.nn.Module):
    def __init__(self, i, o, n_glu=2, first=False, shared_layers=None):
        super().__init__()
        self.first = first
        fcs = shared_layers if shared_layers is not None else [None] * n_glu
        self.glu_layers = torch.nn.ModuleList(GLU_Layer(i if k == 0 else o, o, fc) for k, fc in enumerate(fcs))
        self.register_buffer("scale", torch.sqrt(torch.FloatTensor([0.5])))

    def forward(self, x):
        if self.first:
            x = self.glu_layers[0](x)
            rest = range(1, len(self.glu_layers))
        else:
            rest = range(len(self.glu_layers))
        for k in rest:
            x = torch.add(x, self.glu_layers[k](x)) * self.scale
        return x


class FeatTransformer(torch.nn.Module):
    def __init__(self, i, o, shared):
        super().__init__()
        self.shared = GLU_Block(i, o, first=True, shared_layers=shared)
        self.specifics = GLU_Block(o, o, first=False)

    def forward(self, x):
        return self.specifics(self.shared(x))


class AttentiveTransformer(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = Linear(i, o, bias=False)
        self.bn = GBN(o)

    def forward(self, priors, x):
        return sparsemax(torch.mul(self.bn(self.fc(x)), priors), -1)


class TabNet(torch.nn.Module):
    def __init__(self, n_num, cat_dims, cat_emb, out_dim, gamma=1.3):
        super().__init__()
        self.embeddings = torch.nn.ModuleList(torch.nn.Embedding(a, b) for a, b in zip(cat_dims, cat_emb))
        dim = n_num + sum(cat_emb)
        self.input_dim, self.gamma, self.epsilon = dim, gamma, 1e-15
        self.initial_bn = BatchNorm1d(dim, momentum=0.01)
        shared = torch.nn.ModuleList([Linear(dim, 2 * (N_D + N_A), bias=False), Linear(N_D + N_A, 2 * (N_D + N_A), bias=False)])
        self.initial_splitter = FeatTransformer(dim, N_D + N_A, shared)
        self.feat_transformers = torch.nn.ModuleList(FeatTransformer(dim, N_D + N_A, shared) for _ in range(N_STEPS))
        self.att_transformers = torch.nn.ModuleList(AttentiveTransformer(N_A, dim) for _ in range(N_STEPS))
        self.final_mapping = Linear(N_D, out_dim, bias=False)

    def forward(self, num, cat):
        x = torch.cat([num] + [e(cat[:, k]) for k, e in enumerate(self.embeddings)], dim=1)
        x = self.initial_bn(x)
        prior = torch.ones(x.shape, device=x.device)
        m_loss, res = 0, 0
        att = self.initial_splitter(x)[:, N_D:]
        for step in range(N_STEPS):
            M = self.att_transformers[step](prior, att)
            m_loss += torch.mean(torch.sum(torch.mul(M, torch.log(M + self.epsilon)), dim=1))
            prior = torch.mul(self.gamma - M, prior)
            out = self.feat_transformers[step](torch.mul(M, x))
            res = torch.add(res, torch.nn.ReLU()(out[:, :N_D]))
            att = out[:, N_D:]
        return self.final_mapping(res), m_loss / N_STEPS


def make_data():
    g = torch.Generator().manual_seed(0)
    num = torch.randn(N_ROWS, N_NUM, generator=g)
    cat = torch.stack([torch.randint(0, d, (N_ROWS,), generator=g) for d in CAT_DIMS], 1)
    logit = num[:, 0] * num[:, 1] + num[:, 2] - (cat[:, 2] % 3 == 0).float() + 0.3 * torch.randn(N_ROWS, generator=g)
    y = (logit > 0).long()
    k = int(N_ROWS * 0.8)
    return TensorDataset(num[:k], cat[:k], y[:k]), TensorDataset(num[k:], cat[k:], y[k:])


def main():
    torch.manual_seed(0)
    train_ds, valid_ds = make_data()
    train = DataLoader(train_ds, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    valid = DataLoader(valid_ds, batch_size=BATCH_SIZE, shuffle=False)
    net = TabNet(N_NUM, CAT_DIMS, CAT_EMB, 2).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.9)
    loss_fn = torch.nn.functional.cross_entropy
    best, best_state, wait = 0.0, None, 0
    for epoch in range(MAX_EPOCHS):
        net.train()
        epoch_loss = []
        for num, cat, y in train:
            num, cat, y = num.to(device).float(), cat.to(device), y.to(device)
            for param in net.parameters():
                param.grad = None
            output, m_loss = net(num, cat)
            loss = loss_fn(output, y)
            loss = loss - 1e-3 * m_loss
            loss.backward()
            clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            epoch_loss.append(loss.cpu().detach().numpy().item())
        scheduler.step()
        net.eval()
        ys, ps = [], []
        for num, cat, y in valid:
            with torch.no_grad():
                out, _ = net(num.to(device).float(), cat.to(device))
            ps.append(torch.nn.Softmax(dim=1)(out).cpu().numpy())
            ys.append(y.numpy())
        ys, ps = np.concatenate(ys), np.vstack(ps)
        auc = roc_auc_score(ys, ps[:, 1])
        print(f"epoch {epoch} | loss: {np.mean(epoch_loss):.5f} | valid_auc: {auc:.5f} | logloss: {log_loss(ys, ps):.5f}")
        if auc > best:
            best, best_state, wait = auc, copy.deepcopy(net.state_dict()), 0
        else:
            wait += 1
            if wait >= PATIENCE:
                print("Early stopping")
                break
    if best_state is not None:
        net.load_state_dict(best_state)
    torch.save(net.state_dict(), os.path.join(tempfile.mkdtemp(), "network.pt"))


if __name__ == "__main__":
    main()
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0:
        print("PEAK", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
