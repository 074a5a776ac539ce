"""jinja2 set up as Hugging Face transformers sets it up for chat templates, and GGUF templates."""
import datetime
import functools
import json

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1_753_000_000  # seconds since the epoch, read as UTC


class GenerationTag(jinja2.ext.Extension):
    """{% generation %}: marks what the assistant wrote; renders its body as a call block does."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class TemplateNamespace(jinja2.utils.Namespace):
    def __setitem__(self, name, value):
        if str(name).startswith("_"):
            raise jinja2.exceptions.SecurityError("underscore in a namespace")
        jinja2.utils.Namespace.__setitem__(self, name, value)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def strftime_now(format):
    moment = datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc)
    return moment.replace(tzinfo=None).strftime(format)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    env.globals["dict"] = dict
    env.globals["namespace"] = TemplateNamespace
    return env


ENVIRONMENT = environment()


@functools.lru_cache(maxsize=64)
def compile_template(source):
    return ENVIRONMENT.from_string(source)


def render(source, job):
    """("text", rendering) or ("error", what jinja2 raised)."""
    variables = {"tools": None, "documents": None}
    variables["add_generation_prompt"] = job.get("add_generation_prompt", False)
    for token in ("bos_token", "eos_token"):
        if job.get(token):
            variables[token] = job[token]
    variables.update(job["context"])
    try:
        return "text", compile_template(source).render(**variables)
    except RecursionError:
        return "error", "RecursionError"
    except Exception as error:  # noqa: BLE001: whatever a template does to Python
        return "error", f"{type(error).__name__}: {error}"


def gguf_template(path):
    """The chat template of a GGUF file with its bos and eos tokens; the template may be None."""
    from gguf import GGUFReader

    reader = GGUFReader(path)

    def value(name, *index):
        field = reader.fields.get(name)
        return None if field is None else field.contents(*index)

    def token(name):
        index = value(name)
        return "" if index is None else value("tokenizer.ggml.tokens", index)

    return (
        value("tokenizer.chat_template"),
        token("tokenizer.ggml.bos_token_id"),
        token("tokenizer.ggml.eos_token_id"),
    )
