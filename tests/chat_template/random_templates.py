"""Random expressions and templates from a grammar, rendered here and by jinja2.

    random_templates.py RENDERER [--count N] [--seed S]

A case passes where the texts are equal or both sides fail. What we say is unsupported is counted
apart: it must name its construct, but is no wrong answer. Status 1 where anything differs.
"""
import argparse
import collections
import json
import random
import subprocess
import sys

import reference

CONTEXT = {
    "messages": [
        {"role": "system", "content": "  Be brief.\n"},
        {"role": "user", "content": "Héllo wörld ß 日本 it's"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"function": {"name": "f", "arguments": {"b": 1, "a": [1, 2.5, None, True]}}}]},
        {"role": "tool", "content": ["x", "y"]},
    ],
    "i": 7, "n": -3, "f": 2.5, "z": 0, "t": True, "none_value": None, "e": "", "big": 1e22,
    "s": "Abc def-ghi", "text": "one two  three\nfour\r\nfive", "ints": [3, 1, 2, 3],
    "words": ["b", "A", "c", "a"], "d": {"x": 1, "Y": [1, 2], "items": 3}, "nested": [[1, [2]], {"k": ()or []}],
    "people": [{"n": "Bo", "a": 3}, {"n": "al", "a": 1}, {"n": "Cy", "a": 3, "x": {"y": 5}}],
}


class Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *options):
        return self.random.choice(options)

    def literal(self):
        return self.pick("1", "0", "-2", "3", "2.5", "0.1", "1e3", "'a'", '"it\'s"', "'b' 'c'", "'\\n\\u00e9'",
                         "true", "False", "none", "[]", "{}", "()", "'Abc'", "'1'", "' x '", "10_0", "0x1F")

    def name(self):
        return self.pick("i", "n", "f", "z", "t", "none_value", "e", "s", "text", "ints", "words", "d", "nested",
                         "people", "missing", "messages", "big")

    def strings(self, depth):
        if depth <= 0:
            return self.pick("s", "text", "e", "'a b'", "'xyx'", "messages[1].content", "messages[0]['content']",
                             "'%s-%s'", "'{}'", "'<a&b>'")
        return self.pick(
            lambda: self.strings(0),
            lambda: f"({self.strings(depth - 1)} + {self.strings(depth - 1)})",
            lambda: f"({self.expr(depth - 1)} ~ {self.expr(depth - 1)})",
            lambda: f"{self.strings(depth - 1)}{self.slice()}",
            lambda: f"{self.strings(depth - 1)}{self.string_method()}",
            lambda: f"(({self.expr(depth - 1)})|{self.string_filter()})",
            lambda: f"(({self.expr(depth - 1)})|tojson)",
            lambda: f"(({self.expr(depth - 1)})|tojson(indent={self.pick('0', '2', 'none')}))",
        )()

    def slice(self):
        part = lambda: self.pick("", "", "1", "-1", "2", "-3", "0", "10", "-10")  # noqa: E731
        return self.pick(f"[{part()}:{part()}]", f"[{part()}:{part()}:{self.pick('', '1', '2', '-1', '-2')}]",
                         f"[{self.pick('0', '-1', '1', '5')}]")

    def string_method(self):
        return self.pick(".strip()", ".lstrip()", ".rstrip()", ".strip('a ')", ".lstrip('Aa')", ".upper()", ".lower()",
                         ".title()", ".capitalize()", ".replace('o', '0')", ".replace('', '-')", ".swapcase()",
                         ".replace('e', 'EE', 1)", ".split()[0]", ".split(' ')[-1]", ".rsplit(' ', 1)[0]",
                         ".center(15, '*')", ".zfill(12)", ".ljust(9)", ".rjust(9)", ".format(1, 2)", ".removeprefix('A')",
                         ".removesuffix('i')", ".partition(' ')[2]", ".splitlines()", ".join(['1', '2'])")

    def string_filter(self):
        return self.pick("upper", "lower", "title", "capitalize", "trim", "string", "replace('a', 'b')", "indent",
                         "indent(2, true)", "indent('> ', first=true, blank=true)", "wordcount", "truncate(5)",
                         "truncate(9, true, '..')", "center(20)", "escape", "e", "safe", "length", "first", "last",
                         "reverse|list", "list", "default('D')", "d('D', true)", "int", "float", "abs", "round",
                         "round(1)", "round(1, 'floor')", "int(5)", "float(1.5)", "string|length", "format('p')")

    def list_expr(self, depth):
        if depth <= 0:
            return self.pick("ints", "words", "[1, 2]", "range(4)", "range(5, 0, -2)", "d", "people", "text.split()",
                             "d.items()", "d.keys()", "d.values()", "messages", "(1, 'a', none)", "nested", "'abc'")
        return self.pick(
            lambda: self.list_expr(0),
            lambda: f"({self.list_expr(depth - 1)}|{self.list_filter()})",
            lambda: f"({self.list_expr(depth - 1)}|list){self.slice()}",
            lambda: f"[{self.expr(depth - 1)}, {self.expr(depth - 1)}]",
            lambda: f"({self.list_expr(depth - 1)}|list + {self.list_expr(depth - 1)}|list)",
        )()

    def list_filter(self):
        return self.pick("list", "sort", "sort(reverse=true)", "sort(attribute='n')", "sort(attribute='a,n')",
                         "map('upper')|list", "map(attribute='n')|list", "map(attribute='x.y', default='-')|list",
                         "select|list", "reject|list", "select('string')|list", "reject('equalto', 1)|list",
                         "selectattr('x')|list", "selectattr('a', 'equalto', 3)|list", "rejectattr('x', 'defined')|list",
                         "unique|list", "reverse|list", "batch(2)|list", "batch(3, 0)|list", "slice(2)|list",
                         "join(',')|list", "first|string|list", "dictsort", "dictsort(true, 'value')", "items|list",
                         "groupby('a')", "map('string')|list", "map('int', 9)|list", "select('gt', 1)|list", "tojson|list",
                         "selectattr('role', 'in', ['user', 'tool'])|list")

    def test(self):
        return self.pick("defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true",
                         "false", "mapping", "iterable", "sequence", "callable", "odd", "even", "divisibleby 3",
                         "divisibleby(2)", "eq 1", "equalto('a')", "ne 2", "gt 1", "lt 2.5", "ge 1", "le 3", "in [1, 'a']",
                         "lower", "upper", "not none", "not defined", "not string", "sameas none", "escaped")

    def expr(self, depth):
        if depth <= 0:
            return self.pick(self.literal, self.name)()
        sub = lambda: self.expr(depth - 1)  # noqa: E731
        return self.pick(
            self.literal, self.name,
            lambda: f"({sub()} {self.pick('+', '-', '*', '/', '//', '%', '~')} {sub()})",
            lambda: f"{sub()} {self.pick('+', '-', '*', '~')} {sub()}",
            lambda: f"({self.pick('i', 'n', 'f', '2')} ** {self.pick('2', '0', '-1', '3')})",
            lambda: f"({sub()} {self.pick('==', '!=', '<', '<=', '>', '>=', 'in', 'not in')} {sub()})",
            lambda: f"({sub()} < {sub()} <= {sub()})",
            lambda: f"({sub()} {self.pick('and', 'or')} {sub()})",
            lambda: f"{self.pick('not ', '-', '+')}{sub()}",
            lambda: f"({sub()} if {sub()} else {sub()})",
            lambda: f"({sub()} if {sub()})",
            lambda: f"({sub()} is {self.test()})",
            lambda: f"{sub()} is {self.test()}",
            lambda: f"{self.name()}.{self.pick('x', 'Y', 'n', 'role', 'items', 'nope', 'upper', 'get', 'append', '0')}",
            lambda: f"{self.name()}[{sub()}]",
            lambda: f"d.get({sub()}, {sub()})",
            lambda: "{" + f"{self.literal()}: {sub()}, 'k': {sub()}" + "}",
            lambda: f"({sub()},)",
            lambda: self.strings(depth - 1),
            lambda: self.list_expr(depth - 1),
            lambda: f"{self.strings(depth - 1)}.{self.pick('startswith', 'endswith', 'count', 'find', 'rfind')}({sub()})",
            lambda: f"{self.strings(depth - 1)}.{self.pick('isdigit', 'isalpha', 'isupper', 'islower', 'isspace', 'istitle', 'isalnum')}()",
            lambda: f"{self.strings(depth - 1)} % {sub()}",
            lambda: f"{self.strings(depth - 1)} % ({sub()}, {sub()})",
            lambda: f"'{self.pick('%d', '%5.2f', '%x', '%-5s|', '%05d', '%r', '%+d', '%e', '%g', '%%')}' % {sub()}",
            lambda: "'" + self.pick("{:>5}", "{:.2f}", "{0}{0}", "{!r}", "{:05d}", "{:,}", "{:x}", "{:^7}|") + f"'.format({sub()})",
            lambda: f"dict(a={sub()})", lambda: f"m({sub()})", lambda: f"m({sub()}, b={sub()})",
        )()

    def block_edge(self):
        return self.pick("", "", "", "-", "+"), self.pick("", "", "", "-", "+")

    def tag(self, body):
        left, right = self.block_edge()
        return "{%" + left + f" {body} " + right + "%}"

    def text(self):
        return self.pick("", "x", " ", "\n", "  \n  ", "\n\n", "é ", "a\n  ", "{ }", "\t", "}}", "#", " # \n")

    def output(self, depth):
        left, right = self.pick("", "", "-"), self.pick("", "", "-")
        return "{{" + left + " " + self.expr(depth) + " " + right + "}}"

    def statements(self, depth, in_loop=False):
        parts = []
        for _ in range(self.random.randint(1, 4)):
            parts += [self.text(), self.statement(depth, in_loop)]
        return "".join(parts) + self.text()

    def loop_member(self):
        return self.pick("index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0",
                         "previtem", "nextitem", "cycle('a', 'b')", "changed(v)", "changed(1)")

    def statement(self, depth, in_loop):
        inner = lambda loop=in_loop: self.statements(depth - 1, loop)  # noqa: E731
        if depth <= 0:
            return self.output(2)
        return self.pick(
            lambda: self.output(3), lambda: self.output(2),
            lambda: self.tag(f"if {self.expr(2)}") + inner() + self.pick("", self.tag("else") + inner()) + self.tag("endif"),
            lambda: self.tag(f"if {self.expr(1)}") + inner() + self.tag(f"elif {self.expr(1)}") + inner() + self.tag("endif"),
            lambda: self.tag(f"for v in {self.list_expr(2)}") + inner(True) + "{{ v }}{{ loop." + self.loop_member() + " }}"
            + self.tag("endfor"),
            lambda: self.tag(f"for k, v in {self.pick('d.items()', 'd|items', 'd|dictsort', '[(1, 2), [3, 4]]')}")
            + "{{ k }}={{ v }}" + inner(True) + self.tag("else") + inner() + self.tag("endfor"),
            lambda: self.tag(f"for v in {self.list_expr(1)} if {self.pick('v', 'v is string', 'loop', 'v != 1')}")
            + inner(True) + "{{ loop.length }}" + self.tag("else") + "none" + self.tag("endfor"),
            lambda: self.tag(f"set {self.pick('i', 's', 'v', 'x')} = {self.expr(2)}"),
            lambda: self.tag("set x") + inner(False) + self.tag("endset") + "{{ x }}",
            lambda: self.tag("set x | upper") + inner(False) + self.tag("endset") + "{{ x|length }}",
            lambda: self.tag(f"set ns.a = {self.expr(2)}") + "{{ ns.a }}",
            lambda: self.tag("set a, b = " + self.pick("1, 2", "'xy'", "ints[:2]", "ints")) + "{{ a }}{{ b }}",
            lambda: self.tag(f"filter {self.pick('upper', 'trim', 'replace(1, 2)', 'indent')}") + inner(False) + self.tag("endfilter"),
            lambda: self.tag(f"macro m(a, b={self.expr(1)})") + "<{{ a }}|{{ b }}>" + inner(False) + self.tag("endmacro"),
            lambda: self.tag("call m(1)") + inner(False) + self.tag("endcall"),
            lambda: self.tag(f"with x = {self.expr(2)}, y = x") + inner() + "{{ x }}" + self.tag("endwith"),
            lambda: self.tag("generation") + inner(False) + self.tag("endgeneration"),
            lambda: "{#" + self.pick("", "-", "+") + " note " + self.pick("", "-", "+") + "#}",
            lambda: self.tag("raw") + self.text() + "{{ not }}" + self.text() + self.tag("endraw"),
            lambda: (self.tag(f"if {self.expr(1)}") + self.tag(self.pick("break", "continue")) + self.tag("endif")) if in_loop else "",
        )()

    def template(self):
        prefix = "{%- set ns = namespace(a=1) -%}{% macro m(a, b=2) %}[{{ a }},{{ b }}]{% endmacro %}"
        if self.random.random() < 0.75:  # short ones, which seldom fail
            return prefix + "{{ " + self.expr(self.random.randint(1, 3)) + " }}"
        return prefix + self.statements(self.random.randint(1, 3))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("renderer")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=20)
    args = parser.parse_args()
    renderer = subprocess.Popen([args.renderer], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    grammar = Grammar(args.seed)
    counts = collections.Counter()
    unsupported = collections.Counter()
    for _ in range(args.count):
        source = grammar.template()
        job = {"context": CONTEXT, "add_generation_prompt": True, "now": reference.NOW}
        renderer.stdin.write(json.dumps({"template": source, **job}).encode() + b"\n")
        renderer.stdin.flush()
        line = renderer.stdout.readline()
        if not line:
            print("the renderer died on", repr(source))
            sys.exit(1)
        ours = json.loads(line)
        kind, theirs = reference.render(source, job)
        if kind == "text" and " at 0x" in theirs:
            counts["prints an address"] += 1
        elif kind == "text" and ours.get("text") == theirs:
            counts["equal"] += 1
        elif kind == "error" and "error" in ours:
            counts["both fail"] += 1
        elif ours.get("code") in ("unsupported", "resource exhausted"):
            counts["unsupported"] += 1
            unsupported[ours["error"].split(": ", 1)[1]] += 1
        else:
            counts["DIFFERENT"] += 1
            if counts["DIFFERENT"] <= args.show:
                print(f"{source!r}\n  jinja2: {kind} {theirs!r}\n  ours:   {ours.get('error', ours.get('text'))!r}")
    print(dict(counts))
    print("unsupported:", dict(unsupported.most_common(12)))
    sys.exit(1 if counts["DIFFERENT"] else 0)


main()
