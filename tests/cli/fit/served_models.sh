# Models that are headers and nothing behind them: what `fit --serve` reads.

# A llama of two layers as GGUF: 4-bit weights, an output of its own. Its tensors are holes.
tiny_gguf() {
  python3 - "$1" <<'END'
import struct, sys
def text(value): return struct.pack("<Q", len(value)) + value.encode()
def number(key, value): return text(key) + struct.pack("<II", 4, value)
sizes = {"block_count": 2, "context_length": 32768, "embedding_length": 2048, "feed_forward_length": 8192,
         "attention.head_count": 16, "attention.head_count_kv": 4}
entries = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
entries += [number("llama." + key, value) for key, value in sizes.items()]
tensors, offset = [], 0
def tensor(name, *shape):
    global offset
    count = 1
    for size in shape: count *= size
    tensors.append(text(name) + struct.pack("<I", len(shape)) + struct.pack("<%dQ" % len(shape), *shape) +
                   struct.pack("<IQ", 12, offset))
    offset += count // 256 * 144
tensor("token_embd.weight", 2048, 32000)
tensor("output.weight", 2048, 32000)
for layer in range(2):
    for name, shape in (("attn_q", (2048, 2048)), ("attn_k", (2048, 512)), ("attn_v", (2048, 512)),
                        ("attn_output", (2048, 2048)), ("ffn_gate", (2048, 8192)), ("ffn_up", (2048, 8192)),
                        ("ffn_down", (8192, 2048))):
        tensor("blk.%d.%s.weight" % (layer, name), *shape)
header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries + tensors)
with open(sys.argv[1], "wb") as out:
    out.write(header)
    out.truncate((len(header) + 31) // 32 * 32 + offset)
END
}

# A llama of two layers as safetensors of bf16 with its config.json, in a folder.
tiny_model() {
  mkdir -p "$1"
  python3 - "$1" <<'END'
import json, os, struct, sys
config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
          "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
          "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "tie_word_embeddings": False}
json.dump(config, open(os.path.join(sys.argv[1], "config.json"), "w"))
header, offset = {}, 0
def tensor(name, *shape):
    global offset
    size = 2
    for one in shape: size *= one
    header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
    offset += size
tensor("model.embed_tokens.weight", 32000, 2048)
tensor("lm_head.weight", 32000, 2048)
for layer in range(2):
    for name, shape in (("self_attn.q_proj", (2048, 2048)), ("self_attn.k_proj", (512, 2048)),
                        ("self_attn.v_proj", (512, 2048)), ("self_attn.o_proj", (2048, 2048)),
                        ("mlp.gate_proj", (8192, 2048)), ("mlp.up_proj", (8192, 2048)), ("mlp.down_proj", (2048, 8192))):
        tensor("model.layers.%d.%s.weight" % (layer, name), *shape)
text = json.dumps(header).encode()
with open(os.path.join(sys.argv[1], "model.safetensors"), "wb") as out:
    out.write(struct.pack("<Q", len(text)) + text)
    out.truncate(8 + len(text) + offset)
END
}
