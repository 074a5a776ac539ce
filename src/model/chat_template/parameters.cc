#include "model/chat_template/parameters.h"

#include <algorithm>

#include "model/chat_template/operators.h"

namespace memdecay::jinja {

Parameters::Parameters(Runtime& runtime, std::string_view function, const CallArguments& arguments,
                       std::initializer_list<std::string_view> names, std::size_t required)
    : runtime_(runtime), function_(function), names_(names), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names_.size()) {
    runtime.fail_argument("{} takes at most {} arguments, not {}", function_, names_.size(),
                          arguments.positional.size());
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.keyword) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      runtime.fail_argument("{} has no argument '{}'", function_, name);
    }
    const Value*& slot = values_[static_cast<std::size_t>(found - names_.begin())];
    if (slot != nullptr) {
      runtime.fail_argument("{} got its argument '{}' twice", function_, name);
    }
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      runtime.fail_argument("{} needs its argument '{}'", function_, names_[i]);
    }
  }
}

const Value* Parameters::get_not_none(std::size_t index) const {
  const Value* value = values_[index];
  return value == nullptr || value->is_none() ? nullptr : value;
}

bool Parameters::flag(std::size_t index, bool fallback) const {
  return values_[index] == nullptr ? fallback : truthy(*values_[index]);
}

std::int64_t Parameters::integer(std::size_t index, std::int64_t fallback) const {
  const Value* value = values_[index];
  if (value == nullptr) return fallback;
  if (value->is_undefined()) runtime_.fail_undefined(*value);
  if (!value->is_integral()) {
    runtime_.fail_argument("{} needs an integer as '{}', not a {}", function_, names_[index],
                           kind_name(value->kind()));
  }
  return value->as_int();
}

const Text& Parameters::text(std::size_t index) const {
  const Value& value = *values_[index];
  if (value.is_undefined()) runtime_.fail_undefined(value);
  if (!value.is_string()) {
    runtime_.fail_argument("{} needs a string as '{}', not a {}", function_, names_[index],
                           kind_name(value.kind()));
  }
  return value.text();
}

}  // namespace memdecay::jinja
