#include <algorithm>

#include "model/chat_template/attributes.h"
#include "model/chat_template/filters.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"
#include "model/chat_template/python_text.h"
#include "model/chat_template/stable_order.h"
#include "model/chat_template/string_operations.h"

namespace memdecay::jinja {
namespace {

Value length(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "length", arguments, {});
  return Value::integer(length_of(runtime, input), input.origin());
}

Value to_list(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "list", arguments, {});
  return runtime.make_sequence(Kind::kList, iterate(runtime, input), input.origin());
}

Value first(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "first", arguments, {});
  if (input.is(Kind::kIterator)) {
    SequenceObject& sequence = input.sequence();
    if (sequence.cursor < sequence.items.size()) return sequence.items[sequence.cursor++];
    return Value::undefined("No first item, sequence was empty.");
  }
  if (input.is_string() && !input.text().empty()) return Value::string(input.text().slice(0, 1));
  const std::vector<Value> items = iterate(runtime, input);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "last", arguments, {});
  if (input.is(Kind::kIterator)) runtime.fail_argument("a generator cannot be walked backwards");
  if (input.is_undefined()) runtime.fail_undefined(input);
  if (input.is_string() && !input.text().empty()) {
    return Value::string(input.text().slice(input.text().size() - 1, input.text().size()));
  }
  const std::vector<Value> items = iterate(runtime, input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "reverse", arguments, {});
  if (input.is_string()) {
    return get_slice(runtime, input, Value(), Value(), Value::integer(-1));
  }
  if (input.is_undefined()) return runtime.make_list({});
  std::vector<Value> items = iterate(runtime, input);
  std::reverse(items.begin(), items.end());
  return input.is(Kind::kIterator) ? runtime.make_list(std::move(items))
                                   : runtime.make_iterator(std::move(items));
}

Value items(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "items", arguments, {});
  if (input.is_undefined()) return runtime.make_iterator({});
  if (!input.is(Kind::kDict)) runtime.fail_argument("items needs a mapping");
  std::vector<Value> out;
  for (const auto& [key, value] : input.dict().items) out.push_back(runtime.make_pair(key, value));
  return runtime.make_iterator(std::move(out));
}

Value join(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "join", arguments, {"d", "attribute"});
  const Text separator = parameters.given(0) ? to_text(runtime, parameters[0]) : Text();
  std::vector<Text> parts;
  for (const Value& item : iterate(runtime, input)) {
    parts.push_back(to_text(runtime, get_path(runtime, item, parameters.get_not_none(1))));
  }
  return runtime.make_string(join_texts(runtime, separator, parts));
}

Value default_value(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "default", arguments, {"default_value", "boolean"});
  const bool missing = input.is_undefined() || (parameters.flag(1, false) && !truthy(input));
  if (!missing) return input;
  return parameters.given(0) ? parameters[0] : Value::string(Text());
}

Value sum(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "sum", arguments, {"attribute", "start"});
  Value total = parameters.given(1) ? parameters[1] : Value::integer(0);
  if (total.is_string()) runtime.fail_argument("sum cannot add strings");
  for (const Value& item : iterate(runtime, input)) {
    total = arithmetic(runtime, "+", total, get_path(runtime, item, parameters.get_not_none(0)));
  }
  return total;
}

using Keyed = std::pair<Value, Value>;  ///< key, item

void sort_keyed(Runtime& runtime, std::vector<Keyed>* keyed, bool reverse) {
  // Python keeps equal items in their order in both directions.
  runtime.charge_work(keyed->size() * keyed->size() / 64);
  stable_order(keyed, [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(runtime, b.first, a.first) : less(runtime, a.first, b.first);
  });
}

/// The keys of a comma-separated list of paths, as one list to compare.
Value sort_key(Runtime& runtime, const Value& item, const Value* attribute, bool case_sensitive) {
  std::vector<Value> keys;
  const auto add = [&](const Value* path) {
    const Value key = get_path(runtime, item, path);
    keys.push_back(case_sensitive ? key : ignore_case(runtime, key));
  };
  if (attribute != nullptr && attribute->is_string()) {
    const Text comma(U",", kTemplateOrigin);
    for (Text& part : split_text(runtime, attribute->text(), &comma, -1)) {
      const Value path = Value::string(std::move(part));
      add(&path);
    }
  } else {
    add(attribute);
  }
  return runtime.make_list(std::move(keys));
}

Value sort(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "sort", arguments,
                              {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> keyed;
  for (const Value& item : iterate(runtime, input)) {
    keyed.emplace_back(
        sort_key(runtime, item, parameters.get_not_none(2), parameters.flag(1, false)), item);
  }
  sort_keyed(runtime, &keyed, parameters.flag(0, false));
  std::vector<Value> out;
  for (Keyed& entry : keyed) out.push_back(std::move(entry.second));
  return runtime.make_list(std::move(out));
}

Value dictsort(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::u32string by = parameters.given(1) ? parameters.text(1).chars() : U"key";
  if (by != U"key" && by != U"value") runtime.fail_argument("dictsort sorts by key or value");
  if (input.is_undefined()) runtime.fail_undefined(input);
  if (!input.is(Kind::kDict)) runtime.fail_argument("dictsort needs a mapping");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : input.dict().items) {
    const Value& sorted_by = by == U"key" ? key : value;
    keyed.emplace_back(parameters.flag(0, false) ? sorted_by : ignore_case(runtime, sorted_by),
                       runtime.make_pair(key, value));
  }
  sort_keyed(runtime, &keyed, parameters.flag(2, false));
  std::vector<Value> out;
  for (Keyed& entry : keyed) out.push_back(std::move(entry.second));
  return runtime.make_list(std::move(out));
}

Value unique(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "unique", arguments, {"case_sensitive", "attribute"});
  DictObject seen;
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, input)) {
    Value key = get_path(runtime, item, parameters.get_not_none(1));
    if (!parameters.flag(0, false)) key = ignore_case(runtime, key);
    if (find_key(runtime, seen, key) != nullptr) continue;
    set_key(runtime, &seen, key, Value());
    out.push_back(item);
  }
  return runtime.make_iterator(std::move(out));
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, largest ? "max" : "min", arguments,
                              {"case_sensitive", "attribute"});
  const std::vector<Value> candidates = iterate(runtime, input);
  if (candidates.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const Value& item) {
    const Value key = get_path(runtime, item, parameters.get_not_none(1));
    return parameters.flag(0, false) ? key : ignore_case(runtime, key);
  };
  Value best = candidates.front();
  Value best_key = key_of(best);
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const Value key = key_of(candidates[i]);
    if (largest ? less(runtime, best_key, key) : less(runtime, key, best_key)) {
      best = candidates[i];
      best_key = key;
    }
  }
  return best;
}

Value batch(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = parameters.integer(0, 1);
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : iterate(runtime, input)) {
    if (static_cast<std::int64_t>(row.size()) == size) {
      rows.push_back(runtime.make_list(std::exchange(row, {})));
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    const Value* fill = parameters.get_not_none(1);
    while (fill != nullptr && static_cast<std::int64_t>(row.size()) < size) {
      runtime.charge_work(1);
      row.push_back(*fill);
    }
    rows.push_back(runtime.make_list(std::move(row)));
  }
  return runtime.make_iterator(std::move(rows));
}

Value slice(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "slice", arguments, {"slices", "fill_with"}, 1);
  const std::vector<Value> all = iterate(runtime, input);
  const std::int64_t slices = parameters.integer(0, 1);
  if (slices == 0) runtime.fail_argument("slice needs a number of slices above zero");
  const auto total = static_cast<std::int64_t>(all.size());
  const std::int64_t per_slice = total / slices;
  const std::int64_t with_extra = total % slices;
  std::vector<Value> columns;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    runtime.charge_work(1);
    const std::int64_t end = at + per_slice + (i < with_extra ? 1 : 0);
    std::vector<Value> column(all.begin() + at, all.begin() + end);
    const Value* fill = parameters.get_not_none(1);
    if (fill != nullptr && i >= with_extra) column.push_back(*fill);
    columns.push_back(runtime.make_list(std::move(column)));
    at = end;
  }
  return runtime.make_iterator(std::move(columns));
}

Value groupby(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "groupby", arguments,
                              {"attribute", "default", "case_sensitive"}, 1);
  const auto raw_key = [&](const Value& item) {
    return get_path(runtime, item, &parameters[0], parameters.get_not_none(1));
  };
  std::vector<Keyed> keyed;
  for (const Value& item : iterate(runtime, input)) {
    const Value key = raw_key(item);
    keyed.emplace_back(parameters.flag(2, false) ? key : ignore_case(runtime, key), item);
  }
  sort_keyed(runtime, &keyed, false);
  std::vector<Value> groups;
  for (std::size_t i = 0; i < keyed.size();) {
    std::vector<Value> members;
    std::size_t end = i;
    while (end < keyed.size() && equals(runtime, keyed[end].first, keyed[i].first)) {
      members.push_back(keyed[end++].second);
    }
    if (end == i) members.push_back(keyed[end++].second);  // NaN, which equals nothing
    Value group = runtime.make_pair(raw_key(keyed[i].second), runtime.make_list(members));
    group.sequence().is_group = true;
    groups.push_back(group);
    i = end;
  }
  return runtime.make_list(std::move(groups));
}

Value attribute(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "attr", arguments, {"name"}, 1);
  const Value found = get_attribute(runtime, input, encode_utf8(parameters.text(0).chars()));
  // attr looks for members alone, which items of a dict are not.
  const bool is_item = input.is(Kind::kDict) && !found.is(Kind::kCallable);
  return is_item && !found.is_undefined() ? Value::undefined("a dict has no such member") : found;
}

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  static constexpr FilterEntry kFilters[] = {
      {"length", length},     {"count", length},      {"list", to_list},
      {"first", first},       {"last", last},         {"reverse", reverse},
      {"items", items},       {"join", join},         {"default", default_value},
      {"d", default_value},   {"sum", sum},           {"sort", sort},
      {"unique", unique},     {"dictsort", dictsort}, {"min", extreme<false>},
      {"max", extreme<true>}, {"batch", batch},       {"slice", slice},
      {"groupby", groupby},   {"attr", attribute},
  };
  for (const FilterEntry& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace memdecay::jinja
