"""Pictures of any domain: captions, contact sheets, GIFs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

Picture = UInt8[np.ndarray, "_ _ 3"]
"""An RGB image."""


def captioned(picture: Picture, text: str, *, size: int = 14) -> Picture:
    """The picture with a line of text below it."""
    font = ImageFont.load_default(size)
    width = picture.shape[1]
    strip = Image.new("RGB", (width, size + 8), "white")
    pen = ImageDraw.Draw(strip)
    pen.text(((width - pen.textlength(text, font=font)) / 2, 3), text, fill="black", font=font)
    return np.concatenate([picture, np.asarray(strip)])


def with_captions(picture: Picture, lines: Sequence[str], *, size: int = 12) -> Picture:
    """The picture with lines of text below it, from its left; letters are smaller where a line would not fit."""
    width, margin = picture.shape[1], 6
    strip = Image.new("RGB", (width, len(lines) * (size + 4) + 4), "white")
    pen = ImageDraw.Draw(strip)
    for number, line in enumerate(lines):
        long = pen.textlength(line, font=ImageFont.load_default(size))
        font = ImageFont.load_default(min(size, max(7.0, size * (width - 2 * margin) / max(1.0, long))))
        pen.text((margin, number * (size + 4) + 1), line, fill="black", font=font)
    return np.concatenate([picture, np.asarray(strip)])


def contact_sheet(pictures: Sequence[Picture], *, columns: int, margin: int = 6) -> Picture:
    """Pictures of one size side by side, row after row, on white."""
    height, width, _ = pictures[0].shape
    rows = -(-len(pictures) // columns)
    sheet = np.full((margin + rows * (height + margin), margin + columns * (width + margin), 3), 255, np.uint8)
    for place, picture in enumerate(pictures):
        top = margin + place // columns * (height + margin)
        left = margin + place % columns * (width + margin)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def save_picture(picture: Picture, path: Path) -> None:
    """Writes a PNG, making the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path)


def save_gif(frames: Sequence[Picture], path: Path, *, fps: float) -> None:
    """Writes an endless GIF, making the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *rest = [Image.fromarray(frame) for frame in frames]
    first.save(path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
