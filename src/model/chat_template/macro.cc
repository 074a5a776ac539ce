#include <algorithm>

#include "model/chat_template/interpreter.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {
namespace {

class Macro : public Callable {
 public:
  Macro(Interpreter& interpreter, const MacroDefinition& definition, Scope* home)
      : interpreter_(interpreter), definition_(definition), home_(home) {}
  Value call(Runtime&, CallArguments arguments) override {
    return interpreter_.call_macro(definition_, home_, arguments);
  }
  std::string repr() const override { return "<Macro '" + definition_.name + "'>"; }

 private:
  Interpreter& interpreter_;
  const MacroDefinition& definition_;
  Scope* home_;
};

const Value* find_keyword(const CallArguments& arguments, std::string_view name) {
  for (const auto& [candidate, value] : arguments.keyword) {
    if (candidate == name) return &value;
  }
  return nullptr;
}

}  // namespace

Value make_macro(Runtime& runtime, Interpreter& interpreter, const MacroDefinition& definition,
                 Scope* home) {
  return Value::of(runtime.make<Macro>(interpreter, definition, home));
}

void Interpreter::bind_parameters(const MacroDefinition& macro, const CallArguments& arguments) {
  const std::size_t count = macro.parameters.size();
  const std::size_t given = arguments.positional.size();
  const std::size_t first_default = count - macro.defaults.size();
  std::size_t used_keywords = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = macro.parameters[i];
    const Value* value = i < given ? &arguments.positional[i] : find_keyword(arguments, name);
    if (value != nullptr) {
      used_keywords += i < given ? 0 : 1;
      scope_->set(name, *value);
    } else if (i >= first_default) {
      scope_->set(name, evaluate(*macro.defaults[i - first_default]));
    } else {
      scope_->set(name, Value::undefined("parameter '" + name + "' was not provided"));
    }
  }
  const bool names_caller = std::find(macro.parameters.begin(), macro.parameters.end(), "caller") !=
                            macro.parameters.end();
  const bool takes_caller = macro.uses_caller && !names_caller;
  if (takes_caller) {
    const Value* caller = find_keyword(arguments, "caller");
    used_keywords += caller != nullptr ? 1 : 0;
    const bool none = caller == nullptr || caller->is_none();
    scope_->set("caller", none ? Value::undefined("No caller defined") : *caller);
  }
  if (macro.uses_kwargs) {
    auto* rest = runtime_.make<DictObject>();
    for (const auto& [name, value] : arguments.keyword) {
      const auto parameter = std::find(macro.parameters.begin(), macro.parameters.end(), name);
      const bool bound = parameter != macro.parameters.end() &&
                         static_cast<std::size_t>(parameter - macro.parameters.begin()) >= given;
      if (bound || (takes_caller && name == "caller")) continue;
      rest->items.emplace_back(Value::string(decode_utf8(name).value_or(U"")), value);
    }
    scope_->set("kwargs", Value::of(rest));
  } else if (used_keywords < arguments.keyword.size()) {
    runtime_.fail_argument("the macro '{}' got a keyword argument that it does not take",
                           macro.name);
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest;
    for (std::size_t i = count; i < given; ++i) rest.push_back(arguments.positional[i]);
    scope_->set("varargs", runtime_.make_sequence(Kind::kTuple, std::move(rest)));
  } else if (given > count) {
    runtime_.fail_argument("the macro '{}' takes at most {} arguments, not {}", macro.name, count,
                           given);
  }
}

Value Interpreter::call_macro(const MacroDefinition& macro, Scope* home,
                              const CallArguments& arguments) {
  const Runtime::Level level(runtime_);
  const int line = runtime_.line();
  OutputGuard output(*this);
  const ScopeGuard scope(*this, home);
  bind_parameters(macro, arguments);
  run(macro.body);
  runtime_.set_line(line);
  return Value::string(output.take());
}

}  // namespace memdecay::jinja
