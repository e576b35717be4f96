# pyright: basic
"""Reference program for swatch_rgb: fit each channel's curve on the patches, invert it."""

PATH = "image_1.png"
PROMPT = ""

# %%
import re

import numpy as np
from PIL import Image
from scipy.optimize import least_squares

picture = np.asarray(Image.open(PATH).convert("RGB")).astype(float)
triples = re.findall(r"\((\d+),\s*(\d+),\s*(\d+)\)", PROMPT)
true = np.array(triples, dtype=float)
x, y = map(int, re.findall(r"x=(\d+), y=(\d+)", PROMPT)[0])
count = len(true)
width = picture.shape[1] // count
strip = picture[-56:]
shown = np.array(
    [strip[6:-6, n * width + 6 : (n + 1) * width - 6].mean(axis=(0, 1)) for n in range(count)]
)
swatch = picture[y - 28 : y + 28, x - 28 : x + 28].mean(axis=(0, 1))
print("patches shown as", shown.round(1).tolist())
print("swatch shown as", swatch.round(1).tolist())


# %%
def curve(p, level):
    return p[0] + p[1] * np.power(level / 255, p[2])


answer = []
for channel in range(3):
    fit = least_squares(
        lambda p, level, seen: curve(p, level) - seen,
        [0, 220, 1],
        bounds=([-5, 60, 0.4], [60, 300, 2.5]),
        args=(true[:, channel], shown[:, channel]),
    )
    lift, gain, gamma = fit.x
    value = 255 * max((swatch[channel] - lift) / gain, 0) ** (1 / gamma)
    print("channel", channel, "fit", fit.x.round(3).tolist(), "worst", abs(fit.fun).max().round(2))
    answer.append(round(min(value, 255)))
print("ANSWER: " + ",".join(map(str, answer)))
