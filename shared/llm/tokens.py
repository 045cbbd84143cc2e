"""Upper bounds of prompt tokens without a tokenizer.

Byte-level BPE (Qwen, Llama 3, GPT) never produces more tokens than the text has UTF-8 bytes. The bound is loose
(English has about four bytes a token); limits and budgets are set in terms of it.
"""

TEMPLATE_TOKENS = 64  # role marks and line breaks of a chat template; smaller, and the bound may be exceeded


def token_bound(text: str) -> int:
    """Return the upper bound of the tokens of `text`."""
    return len(text.encode())


def image_token_bound(width: int, height: int) -> int:
    """Return the upper bound of a picture's tokens for Qwen2.5-VL: one per 28 x 28 pixels, at least 4, plus 2 marks."""
    return max(4, -(-width // 28) * -(-height // 28)) + 2
