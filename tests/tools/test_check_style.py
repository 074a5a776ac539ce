"""check_style.py bites where a rule is broken, and only there."""

import check_style
import pytest
from small_tree import write_tree

HEADER = "// What it is.\n#pragma once\n"


def judge(tmp_path, files: dict[str, str]) -> list[str]:
    return check_style.breaches(write_tree(tmp_path, files))


def function(lines: int, head: str = "int f(int x)") -> str:
    return f"{head} {{\n" + "  x();\n" * lines + "}\n"


def test_clean_tree(tmp_path):
    assert judge(tmp_path, {
        "src/kv/CMakeLists.txt": "memdecay_module(kv)\n",
        "src/kv/page.h": HEADER + "class Page {};\n",
        "src/kv/page_test.cc": function(70, "TEST(Page, Works)"),
        "docs/design/kv.md": "See `src/kv/page.h` and `src/kv/page{.h,_test.cc}` and `src/kv/*.h`.\n",
    }) == []


@pytest.mark.parametrize("file, lines", [
    ("src/kv/a.cc", 600), ("src/kv/a.h", 250), ("src/kernels/a.cc", 800), ("src/kernels/a.h", 800),
    ("tests/golden/../e2e/a.cc", 600)])
def test_file_sizes(tmp_path, file, lines):
    assert check_style.check_sizes(file, "\n" * lines) == []
    assert f"{lines + 1} lines" in check_style.check_sizes(file, "\n" * (lines + 1))[0]


@pytest.mark.parametrize("head", [
    "int f(int x)", "void A::f() const noexcept", "A::A(int x) : x_(x), y_{x}", "auto f() -> std::vector<int>",
    "TEST(A, B)", "template <typename T>\nvoid f(T x)", "class X {\n int f()"])
def test_function_sizes(head):
    extra = "};\n" if head.startswith("class") else ""
    assert check_style.check_sizes("src/kv/a.cc", function(70, head) + extra) == []
    assert "71 lines" in check_style.check_sizes("src/kv/a.cc", function(71, head) + extra)[0]


def test_what_is_no_function_has_no_cap():
    for head in ("namespace a", "struct A", "constexpr int table[] =", "enum class E : int"):
        assert check_style.check_sizes("src/kv/a.cc", function(200, head)) == []


def test_kernel_functions_may_be_longer():
    assert check_style.check_sizes("src/kernels/avx2/a.cc", function(120)) == []
    assert check_style.check_sizes("src/kernels/avx2/a.cc", function(121)) != []


def test_braces_in_comments_and_literals_do_not_count():
    body = '  // {{{\n  x("{", \'{\', R"({{)", 1\'000);\n  /* { */\n'
    assert check_style.function_bodies(f"void f() {{\n{body}}}\nvoid g() {{\n}}\n") == [(1, 3), (6, 0)]


def test_control_flow_inside_a_function_is_part_of_it():
    text = "void f() {\n  if (x) {\n    y();\n  }\n  auto g = [] { return 1; };\n}\n"
    assert check_style.function_bodies(text) == [(1, 4)]


@pytest.mark.parametrize("name, bad", [
    ("PageManager", True), ("BaseStore", True), ("ModelInfo", True), ("StringUtils", True), ("DataPage", True),
    ("Database", False), ("Metadata", False), ("Basement", False), ("PagePool", False)])
def test_type_names(name, bad):
    for kind in ("class", "struct", "enum class", "class [[nodiscard]]"):
        assert bool(check_style.check_type_names("a.h", f"{kind} {name} {{}};")) == bad


@pytest.mark.parametrize("line", ["// TO" "DO: more", "// FIX" "ME", "return; // st" "ub", "// not imple" "mented",
                                  "# a place" "holder", "path = '/wo" "rk/x'", "cd /ro" "ot/memdecay"])
def test_lines(tmp_path, line):
    assert len(judge(tmp_path, {"tools/a.sh": f"x\n{line}\n"})) == 1


@pytest.mark.parametrize("line", ["// what to do next", "stubborn", "rooted/rootless", "replacement"])
def test_lines_that_are_fine(tmp_path, line):
    assert judge(tmp_path, {"tools/a.sh": line}) == []


def test_headers(tmp_path):
    found = judge(tmp_path, {"src/kv/a.h": "int x;\n", "src/kernels/target_avx2.h": "// Opens a region.\n"})
    assert [line.split(": ")[1] for line in found] == ["a header begins with its contract",
                                                       "a header has #pragma once"]


def test_a_test_without_a_target(tmp_path):
    found = judge(tmp_path, {"src/kv/CMakeLists.txt": "memdecay_module(kv)\n", "src/kv/a_test.cc": "",
                             "src/kv/deep/b_test.cc": "", "src/kv/too/deep/c_test.cc": "", "src/x/d_test.cc": ""})
    assert [line.split(":")[0] for line in found] == ["src/kv/too/deep/c_test.cc", "src/x/d_test.cc"]


def test_paths_in_docs(tmp_path):
    found = judge(tmp_path, {"docs/a.md": "x\n`src/kv/gone.h` and `src/kv/` and `build/x` and `a/b` and `docs/NAME.md`\n"})
    assert found == ["docs/a.md:2: `src/kv/gone.h` is not there", "docs/a.md:2: `src/kv/` is not there"]


def test_exit_status(tmp_path, capsys):
    judge(tmp_path, {"src/kv/a.h": "int x;\n"})
    assert check_style.main([str(tmp_path)]) == 1
    assert "src/kv/a.h:1: " in capsys.readouterr().out
