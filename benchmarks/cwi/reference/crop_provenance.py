# pyright: basic
"""Reference program for crop_provenance: match edges over sizes, mirrored or not."""

PATH = "image_1.png"

# %%
import cv2
import numpy as np
from PIL import Image

picture = np.asarray(Image.open(PATH).convert("RGB"))
photo = picture[:480]
shown = picture.shape[0] - 496
left = (480 - shown) // 2
crop = picture[496:, left : left + shown]
print("file", picture.shape, "crop shown at", shown)
Image.fromarray(crop)


# %%
def edges(image):
    """Edge strength that neither exchanged channels nor inverted tones change, locally evened out
    so that a bent tone curve matters less."""
    image = cv2.GaussianBlur(image.astype(np.float32), (0, 0), 1.0)
    total = np.zeros(image.shape[:2], np.float32)
    for channel in range(3):
        right = cv2.Sobel(image[:, :, channel], cv2.CV_32F, 1, 0)
        down = cv2.Sobel(image[:, :, channel], cv2.CV_32F, 0, 1)
        total += np.hypot(right, down)
    return np.sqrt(total)


def spread(plane, size):
    """Standard deviation inside every square of this size: in flat ones a correlation is noise."""
    total = cv2.integral(plane.astype(np.float64))
    squares = cv2.integral(plane.astype(np.float64) ** 2)

    def window(sums):
        return sums[size:, size:] - sums[:-size, size:] - sums[size:, :-size] + sums[:-size, :-size]

    mean = window(total) / size**2
    return np.sqrt(np.maximum(window(squares) / size**2 - mean**2, 0))


field = edges(photo)
found = []
for side in range(max(round(shown / 3.05), 30), min(round(shown / 1.95), 100) + 1):
    small = cv2.resize(crop, (side, side), interpolation=cv2.INTER_AREA)
    for mirrored in (False, True):
        template = edges(small[:, ::-1] if mirrored else small)[2:-2, 2:-2]
        fit = cv2.matchTemplate(field, template, cv2.TM_CCOEFF_NORMED)
        fit[spread(field, template.shape[0]) < 0.3 * template.std()] = -1
        _, score, _, (x, y) = cv2.minMaxLoc(fit)
        found.append((score, x - 2, y - 2, side, mirrored))
found.sort(reverse=True)
for score, x, y, side, mirrored in found[:5]:
    print(f"score {score:.3f} at {x},{y} side {side} mirrored {mirrored}")
score, x, y, side, mirrored = found[0]
marked = photo.copy()
cv2.rectangle(marked, (x, y), (x + side - 1, y + side - 1), (255, 0, 255), 2)
Image.fromarray(marked)

# %%
box = [round(1000 * edge / 480) for edge in (x, y, x + side, y + side)]
print("ANSWER: " + ",".join(map(str, box)))
