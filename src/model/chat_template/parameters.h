// Parameters: a call's arguments bound to a built-in function's parameter names.
//
// Throws where Python raises TypeError: too many, unknown, given twice, missing. One call's life.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

class Parameters {
 public:
  /// The first `required` of `names` must be given.
  Parameters(Runtime& runtime, std::string_view function, const CallArguments& arguments,
             std::initializer_list<std::string_view> names, std::size_t required = 0);

  bool given(std::size_t index) const { return values_[index] != nullptr; }
  /// REQUIRES: given(index).
  const Value& operator[](std::size_t index) const { return *values_[index]; }
  const Value* get(std::size_t index) const { return values_[index]; }
  /// Null where it is not given or is None.
  const Value* get_not_none(std::size_t index) const;

  bool flag(std::size_t index, bool fallback) const;
  std::int64_t integer(std::size_t index, std::int64_t fallback) const;
  /// REQUIRES: given(index). Throws where it is not a string.
  const Text& text(std::size_t index) const;

 private:
  Runtime& runtime_;
  std::string function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace memdecay::jinja
