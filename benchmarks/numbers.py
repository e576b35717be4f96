"""The numbers of an answer span, exactly: text clean-up, tokens, and decimals that never surprise.

Words, brackets, units and labels are ignored; what the numbers mean is the caller's business. There
are no thousands separators. Linear in the length of the text; never raises on any text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Context, Decimal

EXACT = Context(prec=1400)
"""Sums and differences of any two numbers read here are exact in this context."""
_DIGITS = Context(prec=400)
_REACH = 400
"""Powers of ten beyond this are drawn in: such a number is typed, and far from any answer."""

_INVISIBLE = dict.fromkeys([0x2009, 0x200A, 0x202F, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD])
_DASHES = dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2015, 0x2212], "-")
"""What NFKC leaves of them."""
_SUBSCRIPT = re.compile(r"_\{(\w{1,20})\}")
_LATEX_SPACE = re.compile(r"\\[,;:!]")
# What wraps a number is taken away without a trace after a sign, else it leaves a space behind, so
# that no two numbers are joined and no number is pushed against a word.
_WRAPPER = re.compile(
    r"(?P<sign>[+-]?)(?:\*\*|\$|\\(?:boxed|text|textbf|mathrm|mathbf)(?![A-Za-z])\s*|[{}])"
)
_NUMBER = re.compile(r"(?:(?<!\d)-|\+)?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_NOT_A_NUMBER = re.compile(r"(?<![a-z])(?:nan|inf|infinity)(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    value: Decimal
    start: int
    """Offsets in the cleaned text."""
    end: int


def clean(span: str) -> str:
    """Full-width digits, dashes, thin spaces, LaTeX and Markdown wrapping brought to plain text."""
    text = unicodedata.normalize("NFKC", span.translate(_INVISIBLE)).translate(_INVISIBLE)
    text = _LATEX_SPACE.sub("", text.translate(_DASHES))
    return _unwrapped(_unwrapped(_SUBSCRIPT.sub(r"_\1", text)))


def numbers(text: str) -> tuple[Number, ...]:
    """Every number of a cleaned text in order; none where the text says nan or inf.

    A number that touches a letter on its left belongs to a name (the 1 of `x1`, of `x_1`); a dash
    right after a digit separates (3-5 is 3 and 5).
    """
    if _NOT_A_NUMBER.search(text):
        return ()
    return tuple(
        Number(_decimal(found[0]), found.start(), found.end())
        for found in _NUMBER.finditer(text)
        if not _in_a_name(text, found.start())
    )


def plain(value: Decimal) -> str:
    """A number as a person writes it: no exponent, no trailing zeros; very long ones rounded."""
    short = value.normalize(Context(prec=15))
    return format(short, "f") if abs(value.adjusted()) < 20 else str(short)


def _unwrapped(text: str) -> str:
    return _WRAPPER.sub(lambda found: found["sign"] or " ", text)


def _in_a_name(text: str, start: int) -> bool:
    before = text[max(start - 2, 0) : start]
    if before.endswith("_"):
        before = before[:-1]
    # Scripts without case (Chinese, Japanese) write numbers against words.
    return bool(before) and before[-1].lower() != before[-1].upper()


def _decimal(token: str) -> Decimal:
    mantissa, _, exponent = token.lower().partition("e")
    power = exponent.lstrip("+-").lstrip("0")
    if len(power) > 9:  # further than a decimal reaches, and past every clamp below
        exponent = ("-" if exponent.startswith("-") else "") + "9" * 9
    value = Decimal(f"{mantissa}e{exponent}" if exponent else mantissa)
    if value == 0:
        return Decimal(0)
    if value.adjusted() > _REACH:
        return Decimal(f"1e{_REACH}").copy_sign(value)
    return Decimal(0) if value.adjusted() < -_REACH else _DIGITS.plus(value)
