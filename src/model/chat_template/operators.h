// Python's operators and protocols over Values: truth, equality, order, arithmetic, iteration.
//
// Failures that Python raises are thrown through the Runtime. Recursion over nested values is
// bounded by Runtime::Level, work is charged.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

bool truthy(const Value& value);
bool equals(Runtime& runtime, const Value& a, const Value& b);
/// a < b as Python's sort asks; throws for kinds without an order.
bool less(Runtime& runtime, const Value& a, const Value& b);
/// `op` is one of == != < <= > >= in, not in.
bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b);
bool contains(Runtime& runtime, const Value& container, const Value& item);
/// `op` is one of + - * / // % **.
Value arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b);
Value negate(Runtime& runtime, const Value& value, bool negative);

/// len(value); throws where Python has none.
std::int64_t length_of(Runtime& runtime, const Value& value);
/// All items that iterating over `value` gives; uses up an iterator.
std::vector<Value> iterate(Runtime& runtime, const Value& value);

/// Throws for lists, dicts and what holds them.
void require_hashable(Runtime& runtime, const Value& key);
/// The value at `key`, null where there is none.
const Value* find_key(Runtime& runtime, const DictObject& dict, const Value& key);
const Value* find_key(const DictObject& dict, std::u32string_view key);
void set_key(Runtime& runtime, DictObject* dict, const Value& key, const Value& value);

}  // namespace memdecay::jinja
