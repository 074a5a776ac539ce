// The members of a for loop's `loop` variable.
#pragma once

#include <string_view>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

/// REQUIRES: loop is a kLoop. False where there is no such member.
bool find_loop_member(Runtime& runtime, const Value& loop, std::string_view name, Value* out);

}  // namespace memdecay::jinja
