#include "model/chat_template/globals.h"

#include <algorithm>

#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {
namespace {

using Function = Value (*)(Runtime&, const CallArguments&);

class GlobalFunction : public Callable {
 public:
  explicit GlobalFunction(Function function) : function_(function) {}
  Value call(Runtime& runtime, CallArguments arguments) override {
    return function_(runtime, arguments);
  }

 private:
  Function function_;
};

/// Gives "" on its first call and its separator on all others.
class Joiner : public Callable {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  Value call(Runtime&, CallArguments) override {
    if (used_) return separator_;
    used_ = true;
    return Value::string(Text());
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value range(Runtime& runtime, const CallArguments& arguments) {
  const Parameters parameters(runtime, "range", arguments, {"start", "stop", "step"}, 1);
  if (!arguments.keyword.empty()) runtime.fail_argument("range takes no keyword arguments");
  auto* out = runtime.make<RangeObject>();
  const bool only_stop = !parameters.given(1);
  out->start = only_stop ? 0 : parameters.integer(0, 0);
  out->stop = parameters.integer(only_stop ? 0 : 1, 0);
  out->step = parameters.integer(2, 1);
  if (out->step == 0) runtime.fail_argument("the step of a range cannot be zero");
  const bool up = out->step > 0;
  const bool empty = up ? out->start >= out->stop : out->start <= out->stop;
  const auto bits = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t span =
      up ? bits(out->stop) - bits(out->start) : bits(out->start) - bits(out->stop);
  const std::uint64_t step = up ? bits(out->step) : 0 - bits(out->step);
  const std::uint64_t length = empty ? 0 : (span - 1) / step + 1;
  constexpr std::uint64_t kSandboxLimit = 100'000;
  if (length > kSandboxLimit) {
    runtime.fail_argument("a range of more than {} numbers is not allowed", kSandboxLimit);
  }
  out->length = static_cast<std::int64_t>(length);
  OriginId origin = kTemplateOrigin;
  for (const Value& value : arguments.positional) origin = runtime.mix(origin, value.origin());
  return Value::of(out).with_origin(origin);
}

DictObject* build_dict(Runtime& runtime, std::string_view function,
                       const CallArguments& arguments) {
  auto* dict = runtime.make<DictObject>();
  if (arguments.positional.size() > 1) {
    runtime.fail_argument("{} takes one mapping at most", function);
  }
  for (const Value& source : arguments.positional) {
    if (source.is_undefined()) continue;
    if (source.is(Kind::kDict)) {
      for (const auto& [key, value] : source.dict().items) set_key(runtime, dict, key, value);
      continue;
    }
    for (const Value& pair : iterate(runtime, source)) {
      const std::vector<Value> parts = iterate(runtime, pair);
      if (parts.size() != 2) runtime.fail_argument("{} needs pairs of key and value", function);
      set_key(runtime, dict, parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : arguments.keyword) {
    set_key(runtime, dict, Value::string(decode_utf8(name).value_or(U"")), value);
  }
  return dict;
}

Value make_dict(Runtime& runtime, const CallArguments& arguments) {
  return Value::of(build_dict(runtime, "dict", arguments));
}

Value make_namespace(Runtime& runtime, const CallArguments& arguments) {
  DictObject* dict = build_dict(runtime, "namespace", arguments);
  for (const auto& [key, value] : dict->items) {
    const bool hidden = key.is_string() && !key.text().empty() && key.chars()[0] == U'_';
    if (hidden) runtime.fail_argument("a namespace has no members that start with _");
  }
  return Value::name_space(dict);
}

Value raise_exception(Runtime& runtime, const CallArguments& arguments) {
  const Parameters parameters(runtime, "raise_exception", arguments, {"message"}, 1);
  runtime.fail(StatusCode::kInvalidArgument,
               "the template says: " + encode_utf8(to_text(runtime, parameters[0]).chars()));
}

Value strftime_now(Runtime& runtime, const CallArguments& arguments) {
  const Parameters parameters(runtime, "strftime_now", arguments, {"format"}, 1);
  const std::string format = encode_utf8(parameters.text(0).chars());
  if (format.empty()) return Value::string(Text());
  if (format.find("%f") != std::string::npos) runtime.fail_unsupported("%f in strftime_now");
  if (format.find('\0') != std::string::npos || format.size() > 1024) {
    runtime.fail_unsupported("this format in strftime_now");
  }
  // A space in front tells an empty result from one that does not fit.
  std::string buffer(64 * 1024, '\0');
  const std::string spaced = " " + format;
  const std::size_t size =
      std::strftime(buffer.data(), buffer.size(), spaced.c_str(), &*runtime.clock);
  if (size == 0) runtime.fail_unsupported("so long a text from strftime_now");
  std::optional<std::u32string> text = decode_utf8(std::string_view(buffer).substr(1, size - 1));
  if (!text) runtime.fail_argument("strftime_now gave no UTF-8");
  return runtime.make_string(Text(std::move(*text), parameters[0].origin()));
}

Value make_joiner(Runtime& runtime, const CallArguments& arguments) {
  const Parameters parameters(runtime, "joiner", arguments, {"sep"});
  return Value::of(runtime.make<Joiner>(
      parameters.given(0) ? parameters[0] : Value::string(std::u32string(U", "))));
}

}  // namespace

bool find_global(Runtime& runtime, std::string_view name, Value* out) {
  struct Entry {
    std::string_view name;
    Function function;
  };
  static constexpr Entry kGlobals[] = {
      {"range", range},
      {"dict", make_dict},
      {"namespace", make_namespace},
      {"joiner", make_joiner},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
  };
  if (name == "strftime_now" && !runtime.clock) return false;
  for (const Entry& entry : kGlobals) {
    if (entry.name != name) continue;
    *out = Value::of(runtime.make<GlobalFunction>(entry.function));
    return true;
  }
  if (name == "lipsum" || name == "cycler") {
    runtime.fail_unsupported("the function '{}'", name);
  }
  return false;
}

}  // namespace memdecay::jinja
