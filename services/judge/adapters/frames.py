"""Prepares key frames for a vision model: enlarged by whole pixels, which keeps them sharp, as data URLs."""

import base64
import io
from collections.abc import Sequence

from PIL import Image, UnidentifiedImageError

from shared.errors import ContractError

MAX_SIDE = 512  # pixels; a Game Boy picture has 160 x 144


def select_frames(frames: Sequence[bytes], count: int) -> list[bytes]:
    """Return `count` frames, evenly spaced from the first to the last."""
    if count >= len(frames):
        return list(frames)
    if count == 1:
        return [frames[-1]]
    return [frames[round(i * (len(frames) - 1) / (count - 1))] for i in range(count)]


def enlarged_size(frame: bytes, scale: int) -> tuple[int, int]:
    """Return width and height in pixels of the enlarged frame. Reads the PNG header only."""
    with _open(frame) as image:
        return image.width * scale, image.height * scale


def data_url(frame: bytes, scale: int) -> str:
    """Return the frame, enlarged `scale` times, as `data:image/png;base64,...`."""
    out = io.BytesIO()
    with _open(frame) as image:
        try:
            large = image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
        except (OSError, ValueError, SyntaxError) as error:
            raise ContractError("a key frame is a damaged PNG picture") from error
        large.save(out, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def _open(frame: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(frame), formats=["PNG"])
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ContractError("a key frame is not a PNG picture") from error
    except Image.DecompressionBombError as error:  # Pillow refuses it before its size can be read
        raise ContractError(f"a key frame has far more than {MAX_SIDE} x {MAX_SIDE} pixels") from error
    if max(image.size) > MAX_SIDE:
        raise ContractError(f"a key frame has {image.width} x {image.height} pixels, the limit is {MAX_SIDE}")
    return image
