# SPDX-License-Identifier: Apache-2.0
from __future__ import print_function
import argparse
import os
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

# sine wave prediction, two LSTM cells, double precision, LBFGS over all the data at once
SMALL = os.environ.get('SMALL') == '1'
device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


class Sequence(nn.Module):
    def __init__(self, hidden):
        super(Sequence, self).__init__()
        self.hidden = hidden
        self.lstm1 = nn.LSTMCell(1, hidden)
        self.lstm2 = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, input, future=0):
        outputs = []
        zeros = lambda: torch.zeros(input.size(0), self.hidden, dtype=torch.double, device=input.device)
        h_t, c_t, h_t2, c_t2 = zeros(), zeros(), zeros(), zeros()
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for i in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--steps', type=int, default=10, help='steps to run')
    parser.add_argument('--batch-size', type=int, default=1024, help='number of waves')
    opt = parser.parse_args()
    np.random.seed(0)
    torch.manual_seed(0)
    L, T = (40, 20) if SMALL else (300, 20)
    N = 8 if SMALL else opt.batch_size
    x = np.empty((N, L), 'int64')
    x[:] = np.array(range(L)) + np.random.randint(-4 * T, 4 * T, N).reshape(N, 1)
    data = np.sin(x / 1.0 / T).astype('float64')
    held = max(3, N // 10)
    input = torch.from_numpy(data[held:, :-1]).to(device)
    target = torch.from_numpy(data[held:, 1:]).to(device)
    test_input = torch.from_numpy(data[:held, :-1]).to(device)
    test_target = torch.from_numpy(data[:held, 1:]).to(device)
    seq = Sequence(8 if SMALL else 64)
    seq.double()
    seq.to(device)
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=3)
    for i in range(opt.steps):
        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            print('loss:', loss.item())
            loss.backward()
            return loss
        optimizer.step(closure)
        if i % 5 == 4:
            with torch.no_grad():
                future = 20 if SMALL else 300
                pred = seq(test_input, future=future)
                loss = criterion(pred[:, :-future], test_target)
                print('STEP', i, 'test loss:', loss.item(), pred.cpu().numpy()[0, -1])

    if torch.cuda.is_available():
        s = torch.cuda.memory_stats()
        print('RESULT', s['allocated_bytes.all.peak'], s['reserved_bytes.all.peak'])
