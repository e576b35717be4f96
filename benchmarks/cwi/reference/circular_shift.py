# pyright: basic
"""Reference program for circular_shift: find the column and the row where the picture wraps."""

PATH = "image_1.png"

# %%
import numpy as np
from PIL import Image

picture = np.asarray(Image.open(PATH).convert("RGB")).astype(float)
side = picture.shape[0]
print("size", picture.shape)


def seam_scores(image):
    """How much the step into each column (from the one on its left, wrapping) exceeds the steps
    beside it. A step that one gain explains is an exposure step and counts as none."""
    left = np.roll(image, 1, axis=1)
    step = image - left
    level = np.maximum((image + left) / 2, 8)
    gain = np.clip(np.median(step / level, axis=(0, 2)), -0.3, 0.3)
    step = np.abs(step - gain[None, :, None] * level).max(axis=2)
    height = np.clip(step, 0, 45).mean(axis=0)
    beside = np.max([np.roll(height, d) for d in (-3, -2, -1, 1, 2, 3)], axis=0)
    return height - beside


columns = seam_scores(picture)
rows = seam_scores(picture.swapaxes(0, 1))
for name, scores in (("columns", columns), ("rows", rows)):
    best = np.argsort(scores)[::-1][:3]
    print(name, [(int(at), round(float(scores[at]), 1)) for at in best])

# Look at the strongest column: the picture turned back so that the seam lies in its middle.
at = int(columns.argmax())
turned = np.roll(picture, side // 2 - at, axis=1)[:, side // 2 - 60 : side // 2 + 60]
Image.fromarray(turned.astype(np.uint8)).resize((240, 480))

# %%
allowed = [d for d in range(-232, 233) if abs(d) >= 24]
dx = max(allowed, key=lambda d: columns[d % side])
dy = max(allowed, key=lambda d: rows[d % side])
print(f"ANSWER: {dx},{dy}")
