// The filters that call other filters and tests: map, select, reject, selectattr, rejectattr.
#include <algorithm>

#include "model/chat_template/attributes.h"
#include "model/chat_template/filters.h"
#include "model/chat_template/numbers.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"
#include "model/chat_template/string_operations.h"

namespace memdecay::jinja {
namespace {

std::string name_argument(Runtime& runtime, const Value& value) {
  if (!value.is_string()) {
    runtime.fail_argument("the name of a filter or test must be a string, not a {}",
                          kind_name(value.kind()));
  }
  return encode_utf8(value.chars());
}

CallArguments drop_front(const CallArguments& arguments, std::size_t count) {
  CallArguments out;
  out.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                        arguments.positional.end());
  out.keyword = arguments.keyword;
  return out;
}

Value map_attribute(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "map", arguments, {"attribute", "default"}, 1);
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, input)) {
    out.push_back(get_path(runtime, item, &parameters[0], parameters.get_not_none(1)));
  }
  return runtime.make_iterator(std::move(out));
}

Value map(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  if (!truthy(input)) return runtime.make_iterator({});
  if (arguments.positional.empty()) {
    const bool has_attribute =
        std::any_of(arguments.keyword.begin(), arguments.keyword.end(),
                    [](const auto& keyword) { return keyword.first == "attribute"; });
    if (!has_attribute) runtime.fail_argument("map needs a filter or an attribute");
    return map_attribute(runtime, input, arguments);
  }
  const std::string name = name_argument(runtime, arguments.positional.front());
  const CallArguments rest = drop_front(arguments, 1);
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, input)) {
    out.push_back(find_filter(runtime, name)(runtime, item, rest));
  }
  return runtime.make_iterator(std::move(out));
}

template <bool wanted, bool by_attribute>
Value choose(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  if (!truthy(input)) return runtime.make_iterator({});
  std::size_t used = 0;
  const Value* attribute = nullptr;
  if (by_attribute) {
    if (arguments.positional.empty()) runtime.fail_argument("the name of an attribute is missing");
    attribute = &arguments.positional[used++];
  }
  TypeTest test = nullptr;
  if (arguments.positional.size() > used) {
    test = find_test(runtime, name_argument(runtime, arguments.positional[used++]));
  }
  const CallArguments rest = drop_front(arguments, used);
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, input)) {
    const Value subject = get_path(runtime, item, attribute);
    const bool holds = test == nullptr ? truthy(subject) : test(runtime, subject, rest);
    if (holds == wanted) out.push_back(item);
  }
  return runtime.make_iterator(std::move(out));
}

}  // namespace

Filter find_select_filter(std::string_view name) {
  if (name == "map") return map;
  if (name == "select") return choose<true, false>;
  if (name == "reject") return choose<false, false>;
  if (name == "selectattr") return choose<true, true>;
  if (name == "rejectattr") return choose<false, true>;
  return nullptr;
}

Filter find_filter(Runtime& runtime, std::string_view name) {
  runtime.charge_work(1);
  for (const auto find :
       {find_text_filter, find_sequence_filter, find_select_filter, find_number_filter}) {
    if (const Filter filter = find(name); filter != nullptr) return filter;
  }
  for (const std::string_view known :
       {"filesizeformat", "random", "striptags", "urlencode", "urlize", "wordwrap", "xmlattr"}) {
    if (name == known) runtime.fail_unsupported("the filter '{}'", name);
  }
  runtime.fail_argument("there is no filter named '{}'", name);
}

Value get_path(Runtime& runtime, const Value& item, const Value* path, const Value* fallback) {
  if (path == nullptr || path->is_none()) return item;
  const auto step = [&](const Value& from, const Value& key) {
    Value found = get_item(runtime, from, key);
    return found.is_undefined() && fallback != nullptr ? *fallback : found;
  };
  if (!path->is_string()) return step(item, *path);
  const Text dot(U".", kTemplateOrigin);
  Value value = item;
  for (Text& part : split_text(runtime, path->text(), &dot, -1)) {
    const std::u32string& chars = part.chars();
    const bool is_index = !chars.empty() && std::all_of(chars.begin(), chars.end(), [](char32_t c) {
      return c >= U'0' && c <= U'9';
    });
    const std::optional<Value> index = is_index ? parse_int(runtime, part, 10) : std::nullopt;
    value = step(value, index ? *index : Value::string(std::move(part)));
  }
  return value;
}

Value ignore_case(Runtime& runtime, const Value& value) {
  if (!value.is_string()) return value;
  return runtime.make_string(lower_text(runtime, value.text()));
}

}  // namespace memdecay::jinja
