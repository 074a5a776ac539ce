"""Writes unicode_tables.inc: what Python's str methods know of Unicode, as ranges.

Run with the Python whose behaviour is to be matched: python3 make_unicode_tables.py > unicode_tables.inc
"""
import sys
import unicodedata

LIMIT = 0x110000


def chars():
    for code in range(LIMIT):
        if not 0xD800 <= code < 0xE000:
            yield code


def ranges(predicate):
    out = []
    for code in chars():
        if predicate(chr(code)):
            if out and out[-1][1] == code - 1:
                out[-1][1] = code
            else:
                out.append([code, code])
    return out


def emit_ranges(name, predicate):
    found = ranges(predicate)
    print(f"constexpr CodeRange {name}[] = {{")
    emit_rows(f"{{{a:#x}, {b:#x}}}" for a, b in found)
    print("};")


def emit_rows(items):
    row = ""
    for item in items:
        if len(row) + len(item) > 94:
            print("    " + row.rstrip())
            row = ""
        row += item + ", "
    print("    " + row.rstrip())


def emit_mapping(name, function):
    runs, special = [], []
    for code in chars():
        mapped = function(chr(code))
        if mapped == chr(code):
            continue
        if len(mapped) > 1:
            special.append((code, [ord(c) for c in mapped]))
            continue
        delta = ord(mapped) - code
        if runs and runs[-1][2] == delta:
            gap = code - runs[-1][1]
            if gap <= 2 and (runs[-1][3] in (0, gap)):
                runs[-1][1], runs[-1][3] = code, gap
                continue
        runs.append([code, code, delta, 0])
    print(f"constexpr CaseRun {name}Runs[] = {{")
    emit_rows(f"{{{a:#x}, {b:#x}, {d}, {s or 1}}}" for a, b, d, s in runs)
    print("};")
    print(f"constexpr CaseSpecial {name}Special[] = {{")
    emit_rows(
        f"{{{code:#x}, {{{', '.join(hex(c) for c in (m + [0, 0])[:3])}}}}}" for code, m in special
    )
    print("};")


def is_cased(c):
    return ("1" + c + "\u03a3").lower().endswith("\u03c2")


def is_case_ignorable(c):
    return not is_cased(c) and ("A" + c + "\u03a3").lower().endswith("\u03c2")


print(f"// Made by make_unicode_tables.py from Python {sys.version.split()[0]},")
print(f"// Unicode {unicodedata.unidata_version}. Included by unicode.cc alone.")
print("// clang-format off")
emit_mapping("kUpper", str.upper)
emit_mapping("kLower", str.lower)
emit_mapping("kTitle", str.title)
emit_ranges("kAlphabetic", str.isalpha)
emit_ranges("kDecimal", str.isdecimal)
emit_ranges("kDigit", str.isdigit)
emit_ranges("kNumeric", str.isnumeric)
emit_ranges("kUpperCase", str.isupper)
emit_ranges("kLowerCase", str.islower)
emit_ranges("kSpace", str.isspace)
emit_ranges("kNotPrintable", lambda c: not c.isprintable())
emit_ranges("kCased", is_cased)
emit_ranges("kCaseIgnorable", is_case_ignorable)
print("// clang-format on")
