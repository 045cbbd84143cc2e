"""Writes a tiny language model with random weights as GGUF files: `python -m tests.integration.tiny_model DIR`.

It says nothing sensible, but it is served by a real inference server that applies real schemas to it. The alphabet is
bytes, so a text has exactly as many tokens as bytes: the worst case of the judge's token bound.
"""

import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128
CONTEXT = 16_384
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END, BEGIN = 258, 256
PRINTABLE = range(32, 127)
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PICTURE, PATCH = 56, 14


def alphabet() -> list[str]:
    """GPT-2's spelling of the 256 bytes: printable ones as themselves, the others shifted."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    shifted = {byte: chr(256 + number) for number, byte in enumerate(b for b in range(256) if b not in plain)}
    return [chr(byte) if byte in plain else shifted[byte] for byte in range(256)]


def write_text_model(path: Path) -> None:
    """A two-layer model. Column 0 of the output is a bias that forbids bytes which are not printable."""
    rng = np.random.default_rng(0)
    out = gguf.GGUFWriter(path, "llama")
    _describe(out)
    _vocabulary(out)
    size = 256 + len(CONTROL)
    embedding = _random(rng, size, WIDTH)
    embedding[:, 0] = 4.0
    head = _random(rng, size, WIDTH) / 3  # flat enough that every digit is drawn now and then
    head[:, 0] = [0.0 if token in PRINTABLE or token == END else -20.0 for token in range(size)]
    tensors = {"token_embd": embedding, "output_norm": np.ones(WIDTH, np.float32), "output": head}
    for layer in range(LAYERS):
        tensors |= {f"blk.{layer}.{name}": value for name, value in _layer(rng).items()}
    for name, value in tensors.items():
        out.add_tensor(f"{name}.weight", value)
    _finish(out)


def _layer(rng: np.random.Generator) -> dict[str, Any]:
    square = {name: _random(rng, WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    wide = {name: _random(rng, INNER, WIDTH) for name in ("ffn_gate", "ffn_up")}
    norms = {name: np.ones(WIDTH, np.float32) for name in ("attn_norm", "ffn_norm")}
    down = _random(rng, WIDTH, INNER)
    square["attn_output"][0] = down[0] = 0.0  # nothing may write to column 0: it carries the constant of the bias
    return {**square, **wide, **norms, "ffn_down": down}


def _describe(out: Any) -> None:
    out.add_name("tiny-random")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_file_type(0)


def _vocabulary(out: Any) -> None:
    letters = alphabet()
    kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(CONTROL)
    out.add_vocab_size(len(kinds))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list([*letters, *CONTROL])
    out.add_token_types(kinds)
    # A list of merges must not be empty; this one joins two bytes that no judge ever writes.
    out.add_token_merges([f"{letters[1]} {letters[2]}"])
    out.add_bos_token_id(BEGIN)
    out.add_eos_token_id(END)
    out.add_add_bos_token(False)
    out.add_chat_template(TEMPLATE)


def write_eye(path: Path) -> None:
    """A random picture tower for the model, in the layout of LLaVA."""
    rng = np.random.default_rng(1)
    out = gguf.GGUFWriter(path, "clip")
    out.add_type("mmproj")
    out.add_file_type(0)
    out.add_bool("clip.has_vision_encoder", True)
    out.add_bool("clip.use_gelu", True)
    out.add_string("clip.projector_type", "mlp")
    numbers = {"image_size": PICTURE, "patch_size": PATCH, "embedding_length": WIDTH, "feed_forward_length": WIDTH}
    numbers |= {"block_count": LAYERS, "projection_dim": WIDTH, "attention.head_count": HEADS}
    for name, value in numbers.items():
        out.add_uint32(f"clip.vision.{name}", value)
    out.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    out.add_array("clip.vision.image_mean", [0.5] * 3)
    out.add_array("clip.vision.image_std", [0.5] * 3)
    for name, value in _eye(rng).items():
        out.add_tensor(name, value)
    _finish(out)


def _eye(rng: np.random.Generator) -> dict[str, Any]:
    patches = (PICTURE // PATCH) ** 2
    tensors: dict[str, Any] = {
        "v.class_embd": _random(rng, WIDTH),
        "v.patch_embd.weight": _random(rng, WIDTH, 3, PATCH, PATCH),
        "v.position_embd.weight": _random(rng, patches + 1, WIDTH),
    }
    dense = [f"v.blk.{i}.{name}" for i in range(LAYERS) for name in ("attn_q", "attn_k", "attn_v", "attn_out")]
    dense += [f"v.blk.{i}.{name}" for i in range(LAYERS) for name in ("ffn_up", "ffn_down")] + ["mm.0", "mm.2"]
    norms = ["v.pre_ln", "v.post_ln", *(f"v.blk.{i}.{name}" for i in range(LAYERS) for name in ("ln1", "ln2"))]
    for name in dense:
        tensors |= {f"{name}.weight": _random(rng, WIDTH, WIDTH), f"{name}.bias": np.zeros(WIDTH, np.float32)}
    for name in norms:
        tensors |= {f"{name}.weight": np.ones(WIDTH, np.float32), f"{name}.bias": np.zeros(WIDTH, np.float32)}
    return tensors


def _random(rng: np.random.Generator, *shape: int) -> Any:
    return (rng.standard_normal(shape) * 0.2).astype(np.float32)


def _finish(out: Any) -> None:
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write_text_model(folder / "model.gguf")
    write_eye(folder / "eye.gguf")
