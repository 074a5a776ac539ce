// The functions that every template may call: range, dict, namespace, joiner, raise_exception,
// strftime_now.
#pragma once

#include <string_view>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

/// False where there is no such function; throws for those of jinja2 that this engine has not.
bool find_global(Runtime& runtime, std::string_view name, Value* out);

}  // namespace memdecay::jinja
