"""The screen as a model receives it: JPEG, twice the size, as the original system sent it."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from services.trainer.planning.model_service import PICTURE

QUALITY = 75


def jpeg(screen: NDArray[np.uint8]) -> bytes:
    """JPEG of 320 x 288 pixels of a screen, uint8 (144, 160, 3)."""
    buffer = io.BytesIO()
    Image.fromarray(screen).resize(PICTURE, Image.Resampling.NEAREST).save(buffer, "JPEG", quality=QUALITY)
    return buffer.getvalue()
