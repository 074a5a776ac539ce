// Attribute and item access, and the methods that Python's types have.
//
// As jinja2's sandbox has it: `a.b` tries a method of the type first and then the item "b";
// `a["b"]` the other way round; methods that change a list or dict are there but unsafe to use. A
// method that Python has and this engine has not is a kUnsupported that names it.
#pragma once

#include <string>
#include <string_view>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

Value get_attribute(Runtime& runtime, const Value& object, const std::string& name);
Value get_item(Runtime& runtime, const Value& object, const Value& key);
/// object[start:stop:step]; the bounds are None or integers.
Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step);

using Method = Value (*)(Runtime&, const Value& self, const CallArguments&);
/// The method `name` of a kind, null where this engine has none.
Method find_method(Kind kind, std::string_view name);
Method find_string_method(std::string_view name);

/// What method `name` would be as a value: callable, bound to `self`.
Value bind_method(Runtime& runtime, const Value& self, Method method);

}  // namespace memdecay::jinja
