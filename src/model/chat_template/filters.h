// Filters and tests by name.
//
// The tables are split by what they work on: filters_text.cc, filters_sequence.cc,
// filters_select.cc and type_tests.cc. A filter of jinja2 that is not here is kUnsupported.
#pragma once

#include <string>
#include <string_view>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

using Filter = Value (*)(Runtime&, const Value& input, const CallArguments&);
using TypeTest = bool (*)(Runtime&, const Value& input, const CallArguments&);

struct FilterEntry {
  std::string_view name;
  Filter filter;
};

/// Throws for a name that is no filter, no test.
Filter find_filter(Runtime& runtime, std::string_view name);
TypeTest find_test(Runtime& runtime, std::string_view name);

/// Null where the table has no such name.
Filter find_text_filter(std::string_view name);
Filter find_number_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);
Filter find_select_filter(std::string_view name);

/// The item at a dotted path of names and numbers; None leaves it as it is. `fallback`, where not
/// null, takes the place of each step that is missing.
Value get_path(Runtime& runtime, const Value& item, const Value* path,
               const Value* fallback = nullptr);
/// Lower case where it is a string: what sorting and comparing filters use unless told otherwise.
Value ignore_case(Runtime& runtime, const Value& value);

}  // namespace memdecay::jinja
