"""How many tokens a prompt can have at most, without any tokenizer.

Byte-level BPE (Qwen, Llama 3, GPT) never makes more tokens than the text has UTF-8 bytes: that is a bound, not an
estimate. It is loose (English has about four bytes a token), so budgets are set in terms of it.
"""

TEMPLATE_TOKENS = 64  # role marks and line breaks that a chat template adds; too small and the bound is none


def token_bound(text: str) -> int:
    """Most tokens that `text` can have."""
    return len(text.encode())


def image_token_bound(width: int, height: int) -> int:
    """Most tokens of a picture for Qwen2.5-VL: one per 28 x 28 pixels, at least four, plus start and end."""
    return max(4, -(-width // 28) * -(-height // 28)) + 2
