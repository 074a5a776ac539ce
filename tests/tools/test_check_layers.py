"""check_layers.py bites where a floor is broken, and only there."""

import check_layers
import pytest
from small_tree import write_tree


def judge(tmp_path, files: dict[str, str]) -> list[str]:
    return check_layers.breaches(write_tree(tmp_path, files))


@pytest.mark.parametrize("file, line", [
    ("src/core/a.h", '#include "core/status.h"'),
    ("src/engine/a.cc", '#include "model/gguf/gguf_file.h"'),
    ("src/cli/main.cc", '#include "server/server.h"'),
    ("src/model/transformer/a.cc", '#include "model/gguf/gguf_file.h"'),
    ("src/model/gguf/a.cc", '#include "model/gguf/b.h"'),
    ("src/sys/a.cc", "#include <sys/mman.h>"),
    ("src/kernels/avx2/a.cc", "#include <immintrin.h>"),
    ("src/sys/thread_team.cc", "#include <immintrin.h>"),
    ("src/kv/a_test.cc", "#include <unistd.h>"),
    ("src/kernels/a_bench.cc", "#include <immintrin.h>"),
    ("src/kv/a.cc", "#include <vector>"),
    ("src/kv/a.cc", '// #include "engine/engine.h"'),
    ("src/core/CMakeLists.txt", "memdecay_module(core LIBRARIES fmt::fmt)"),
    ("src/model/transformer/CMakeLists.txt", "memdecay_module(transformer DEPENDS core gguf)"),
    ("include/memdecay/engine.h", '#include "memdecay/policy.h"'),
])
def test_allowed(tmp_path, file, line):
    assert judge(tmp_path, {file: line}) == []


@pytest.mark.parametrize("file, line, word", [
    ("src/core/a.h", '#include "sys/memory.h"', "core may not include sys"),
    ("src/kv/a.cc", '#include "kernels/attention.h"', "kv may not include kernels"),
    ("src/kernels/a.cc", '#  include "model/gguf/gguf_file.h"', "kernels may not include model"),
    ("src/server/a.cc", '#include "kv/page_pool.h"', "server may not include kv"),
    ("src/model/gguf/a.cc", '#include "model/transformer/t.h"', "model/gguf may not include model/transformer"),
    ("src/model/tokenizer/a.cc", '#include "model/gguf/gguf_file.h"', "model/tokenizer may not include model/gguf"),
    ("src/kv/a.cc", '#include "page_pool.h"', "must be written from src/"),
    ("src/kv/a.cc", '#include "../core/status.h"', "must be written from src/"),
    ("src/kv/a.cc", '#include "nowhere/a.h"', "names no module"),
    ("src/extra/a.cc", "int x;", "is no module of the floors"),
    ("src/kv/a.cc", "#include <unistd.h>", "is for src/sys"),
    ("src/engine/a.cc", "#include <sys/stat.h>", "is for src/sys"),
    ("src/kernels/dispatch.cc", "#include <immintrin.h>", "folders below src/kernels"),
    ("src/sys/other.cc", "#include <immintrin.h>", "folders below src/kernels"),
    ("src/kv/a_bench.cc", "#include <immintrin.h>", "folders below src/kernels"),
    ("src/core/CMakeLists.txt", "memdecay_module(core DEPENDS sys)", "core may not depend on sys"),
    ("src/kv/CMakeLists.txt", "memdecay_module(kv DEPENDS core gguf LIBRARIES x)", "kv may not depend on gguf"),
    ("src/model/gguf/CMakeLists.txt", "memdecay_module(gguf DEPENDS tokenizer)", "gguf may not depend on tokenizer"),
    ("include/memdecay/engine.h", '#include "core/status.h"', "installed header"),
])
def test_breach(tmp_path, file, line, word):
    found = judge(tmp_path, {file: "// first\n" + line})
    assert len(found) == 1
    assert found[0].startswith(f"{file}:")
    assert word in found[0]


def test_says_the_line_and_exits_with_one(tmp_path, capsys):
    judge(tmp_path, {"src/core/a.h": '\n\n#include "kv/page_pool.h"\n'})
    assert check_layers.main([str(tmp_path)]) == 1
    assert "src/core/a.h:3: " in capsys.readouterr().out


def test_floors_stand_on_lower_floors_only():
    order = list(check_layers.FLOORS)
    for module, below in check_layers.FLOORS.items():
        assert all(order.index(other) < order.index(module) for other in below.split())
