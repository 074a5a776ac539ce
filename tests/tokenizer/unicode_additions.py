"""Prints the ranges of src/model/tokenizer/unicode_class.cc.

    unicode_additions.py < CLASSES

CLASSES has a line "NAME CODEPOINT" for every code point that PCRE2's \\p{NAME} matches (a loop over pcre2_match). What
the `tokenizers` package matches and PCRE2 does not is printed, by class.
"""

import collections
import sys

from tokenizers import Regex, pre_tokenizers

CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def reference(name):
    split = pre_tokenizers.Split(Regex(rf"\p{{{name}}}+"), "removed", invert=True)
    found = {ord(c) for text, _ in split.pre_tokenize_str("".join(CHARACTERS)) for c in text}
    if name == "N":  # the digit splitter has tables of its own
        digits = pre_tokenizers.Digits(individual_digits=True)
        marked = "".join("a" + c for c in CHARACTERS)
        found |= {ord(t) for t, _ in digits.pre_tokenize_str(marked) if len(t) == 1 and t != "a"}
    return found


def ranges(code_points):
    out = []
    for code in sorted(code_points):
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return "".join(rf"\x{{{a:X}}}" + (rf"-\x{{{b:X}}}" if b > a else "") for a, b in out)


pcre2 = collections.defaultdict(set)
for line in sys.stdin:
    name, code = line.split()
    pcre2[name].add(int(code))
for name in ("L", "N", "M", "P", "S", "Lu", "Ll", "Lt", "Lm", "Lo"):
    print(name, ranges(reference(name) - pcre2[name]))
