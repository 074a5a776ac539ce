// Formatting of values into strings: Python's `%` operator and str.format.
#pragma once

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

/// format % arguments, where arguments is a tuple, a dict or one value.
Value percent_format(Runtime& runtime, const Value& format, const Value& arguments);

/// format.format(*positional, **keyword), with field access as the sandbox allows it.
Value brace_format(Runtime& runtime, const Value& format, const CallArguments& arguments);

}  // namespace memdecay::jinja
