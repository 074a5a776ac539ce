"""The lines that the tokenizers are compared on: deterministic, every script and trick we know.

Code comes from Python's standard library, pieces from the vocabularies, the rest from tables here.
"""

import pathlib
import random
import sysconfig
import unicodedata

WORDS = {
    "latin": "the Quick brown fox's jumps over LAZY dogs it's We'll they'd I'm you've can't naïve café Zürich "
             "señor ångström işık Łódź straße ſhort 'ſ 'S 'RE 'Ll memoryDecay snake_case kv_cache HTTPServer".split(),
    "cjk": "我们在内存中保存对话 你好，世界！ 人工智能 今天天气怎么样？ 東京特許許可局 カタカナ ひらがな 「引用」 한국어 문장입니다 서울 漢字仮名交じり文 "
           "𠮷野家 龘 〇 ２０２４年 ﾊﾝｶｸ ㈱ ①②③".split(),
    "arabic": "مرحبا بالعالم السلام عليكم ٠١٢٣٤٥٦٧٨٩ العَرَبِيَّةُ كِتَابٌ ۱۲۳ فارسی می‌خواهم اُردُو؟ ـــ לשלום עִבְרִית".split(),
    "thai": "สวัสดีชาวโลก ภาษาไทย กำลังทดสอบ น้ำ ๑๒๓๔ ผู้ใหญ่ ลาว ສະບາຍດີ မြန်မာ ខ្មែរ བོད་ཡིག हिन्दी क्षत्रिय বাংলা தமிழ் తెలుగు ಕನ್ನಡ".split(),
    "slavic": "Привет мир Ёлка їжак Ελληνικά Ὀδυσσεύς ქართული Հայերեն Ґанок ѣ".split(),
    "emoji": ["👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "🏳️‍🌈", "❤️", "☠︎", "🧑🏿‍🚀", "1️⃣", "#️⃣", "😀", "🤷‍♀️", "🫠", "🪿", "©", "™️", "🇺", "\u200d", "\ufe0f"],
}
MARKS = [chr(c) for c in (0x300, 0x301, 0x302, 0x308, 0x30A, 0x323, 0x327, 0x328, 0x334, 0x345, 0x35C, 0x483,
                          0x5B0, 0x64B, 0x651, 0x93C, 0x94D, 0xE31, 0xE48, 0x1AB0, 0x20D0, 0x3099, 0xFE20)]
SPACES = [" ", "  ", "    ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u2003", "\u3000", "\u2028",
          "\u200b", "\u180e", "\x0b", "\x0c", "\x85", " \t ", "\ufeff", "▁", "▁▁"]
MARKUP = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<bos>", "<eos>", "<pad>", "<unk>",
          "<start_of_turn>", "<end_of_turn>", "<|im_start", "|im_end|>", "<|im_<|im_start|>", "<0x41>", "<0xFF>", "<unused0>",
          "<start_of_image>", "[multimodal]", "<table>", "</td>", "<strong>", "<|fim_prefix|>", "<repo_name>", "[PAD151700]",
          "<s>", "</s>", "<|eot_id|>", "<tool_call", "tool_call>", "<tool_call>>", "<<tool_call>", ">▁</", "> </"]
NUMBERS = ["0", "7", "42", "123", "1234", "3.14159", "1,234,567", "0xDEADBEEF", "1e-9", "½", "Ⅷ", "²", "10:45", "2024-06-01",
           "999999999999", "٣", "௧", "𝟘", "-5", "+1", "50%", "$19.99", "v1.2.3"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "—", "“", "”", "…", "//", "::", "->", "=>", "!=", "?!", "''", "```", "***"]


def random_character(rng):
    while True:
        kind = rng.random()
        if kind < 0.25:
            code = rng.randrange(0x250)
        elif kind < 0.6:
            code = rng.randrange(0x3000)
        elif kind < 0.85:
            code = rng.randrange(0x10000)
        else:
            code = rng.randrange(0x110000)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def newer_letters():
    """Characters that PCRE2 10.42 (Unicode 14) does not know and newer tables do."""
    return ["\u1c89", "\ua7cb", "\U0001e030", "\U00031350", "\U0002ebf0", "\U00010d40", "\U00011f50", "\U000105c0", "\U00013460"]


def code_lines(rng, count):
    folder = pathlib.Path(sysconfig.get_path("stdlib"))
    text = []
    for name in ("argparse.py", "heapq.py", "json/decoder.py", "asyncio/tasks.py", "decimal.py", "html/entities.py"):
        text += [line for line in (folder / name).read_text("utf-8").split("\n") if line.strip()]
    lines = [rng.choice(text)[:120] for _ in range(count * 4 // 5)]
    while len(lines) < count:
        at = rng.randrange(len(text) - 3)
        lines.append(rng.choice(["\n", "\r\n"]).join(text[at:at + 3])[:160])
    return lines


def mixture(rng, tables, low, high):
    parts = []
    for _ in range(rng.randrange(low, high)):
        parts.append(rng.choice(rng.choice(tables)))
        if rng.random() < 0.5:
            parts.append(rng.choice(SPACES) if rng.random() < 0.3 else " ")
    return "".join(parts)


def marked(rng):
    out = []
    for _ in range(rng.randrange(3, 14)):
        out.append(rng.choice("aeiouAEnszcy кеоあか한ก") + "".join(rng.choice(MARKS) for _ in range(rng.randrange(4))))
    text = "".join(out)
    return unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKD"]), text) if rng.random() < 0.5 else text


def runs(rng):
    unit = rng.choice(SPACES + ["a", "A", "=", "-", "中", "ก", "é", "0", "!", "▁", "\x00", "😀"])
    return rng.choice(["", "x", " x", "9"]) + unit * rng.choice([1, 2, 3, 7, 15, 16, 17, 30, 31, 32, 33, 63, 70]) + rng.choice(["", "y", " y", "\ny", "7"])


def make(pieces, count=10400, seed=20260):
    rng = random.Random(seed)
    lines = [chr(c) for c in range(256)] + ["a%cb" % c for c in range(256)] + ["!%c!" % c for c in range(33)]
    lines += ["", " ", "  ", "\n", "a", " a", "\x00\x01\x02", "'ſ", "x'ſt"] + MARKUP + newer_letters()
    lines += ["a" + c + "b1" + c for c in newer_letters()]
    lines += code_lines(rng, 2200)
    kinds = [
        lambda: mixture(rng, [WORDS["latin"], PUNCTUATION, NUMBERS], 3, 14),
        lambda: mixture(rng, [WORDS["cjk"], WORDS["latin"], PUNCTUATION], 2, 8),
        lambda: mixture(rng, [WORDS["arabic"], NUMBERS], 2, 8),
        lambda: mixture(rng, [WORDS["thai"], SPACES], 2, 7),
        lambda: mixture(rng, [WORDS["slavic"], PUNCTUATION], 2, 8),
        lambda: mixture(rng, [WORDS["emoji"], WORDS["latin"]], 2, 8),
        lambda: mixture(rng, [NUMBERS, PUNCTUATION], 2, 12),
        lambda: mixture(rng, [SPACES, WORDS["latin"], ["\n", "\t", " "]], 4, 14),
        lambda: mixture(rng, [MARKUP, WORDS["latin"], SPACES], 2, 6),
        lambda: mixture(rng, list(WORDS.values()) + [NUMBERS, PUNCTUATION, SPACES, newer_letters()], 3, 10),
        lambda: marked(rng),
        lambda: runs(rng),
        lambda: "".join(random_character(rng) for _ in range(rng.randrange(1, 16))),
        lambda: "".join(rng.choice(pieces) for _ in range(rng.randrange(2, 9))),
        lambda: "".join(rng.choice("abcdefghijklmnopqrstuvwxyzABC '_") for _ in range(rng.randrange(1, 60))),
    ]
    while len(lines) < count:
        line = kinds[len(lines) % len(kinds)]()
        line.encode("utf-8")
        lines.append(line[:200])
    return lines
