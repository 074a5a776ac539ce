#include "model/chat_template/container_methods.h"

#include <algorithm>

#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"

namespace memdecay::jinja {
namespace {

Value dict_view(Runtime& runtime, const Value& self, const char* name, std::vector<Value> items) {
  auto* view = runtime.make<SequenceObject>();
  view->items = std::move(items);
  view->view = name;
  return Value::of(Kind::kDictView, view).with_origin(self.origin());
}

Value dict_keys(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "keys", arguments, {});
  return dict_view(runtime, self, "dict_keys", iterate(runtime, self));
}

Value dict_values(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "values", arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict().items) items.push_back(value);
  runtime.charge_work(items.size());
  return dict_view(runtime, self, "dict_values", std::move(items));
}

Value dict_items(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "items", arguments, {});
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict().items) {
    items.push_back(runtime.make_pair(key, value).with_origin(self.origin()));
  }
  return dict_view(runtime, self, "dict_items", std::move(items));
}

Value dict_get(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  if (!arguments.keyword.empty()) runtime.fail_argument("get takes no keyword arguments");
  const Parameters parameters(runtime, "get", arguments, {"key", "default"}, 1);
  require_hashable(runtime, parameters[0]);
  const Value* found = find_key(runtime, self.dict(), parameters[0]);
  if (found != nullptr) return *found;
  return parameters.given(1) ? parameters[1] : Value::none();
}

Value dict_copy(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "copy", arguments, {});
  auto* copy = runtime.make<DictObject>();
  runtime.charge_work(self.dict().items.size());
  copy->items = self.dict().items;
  copy->message = self.dict().message;
  return Value::of(copy).with_origin(self.origin());
}

Value list_copy(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "copy", arguments, {});
  return runtime.make_sequence(Kind::kList, self.sequence().items, self.origin());
}

Value sequence_count(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "count", arguments, {"value"}, 1);
  std::int64_t count = 0;
  for (const Value& item : self.sequence().items) {
    if (equals(runtime, item, parameters[0])) ++count;
  }
  return Value::integer(count);
}

Value sequence_index(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "index", arguments, {"value", "start", "stop"}, 1);
  const std::vector<Value>& items = self.sequence().items;
  const auto length = static_cast<std::int64_t>(items.size());
  const auto bound = [length](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + length : at, 0, length);
  };
  const std::int64_t stop = bound(parameters.integer(2, length));
  for (std::int64_t i = bound(parameters.integer(1, 0)); i < stop; ++i) {
    if (equals(runtime, items[static_cast<std::size_t>(i)], parameters[0])) {
      return Value::integer(i);
    }
  }
  runtime.fail_argument("the value is not in the {}", kind_name(self.kind()));
}

struct MethodEntry {
  std::string_view name;
  Method method;
};

template <std::size_t n>
Method find_in(const MethodEntry (&entries)[n], std::string_view name) {
  for (const MethodEntry& entry : entries) {
    if (entry.name == name) return entry.method;
  }
  return nullptr;
}

}  // namespace

Method find_container_method(Kind kind, std::string_view name) {
  static constexpr MethodEntry kDict[] = {{"items", dict_items},
                                          {"keys", dict_keys},
                                          {"values", dict_values},
                                          {"get", dict_get},
                                          {"copy", dict_copy}};
  static constexpr MethodEntry kList[] = {
      {"count", sequence_count}, {"index", sequence_index}, {"copy", list_copy}};
  static constexpr MethodEntry kTuple[] = {{"count", sequence_count}, {"index", sequence_index}};
  if (kind == Kind::kDict) return find_in(kDict, name);
  if (kind == Kind::kList) return find_in(kList, name);
  if (kind == Kind::kTuple) return find_in(kTuple, name);
  return nullptr;
}

Value slice_range(Runtime& runtime, const Value& range, std::int64_t first, std::int64_t last,
                  std::int64_t stride) {
  const RangeObject& source = range.range();
  auto* out = runtime.make<RangeObject>();
  out->start = source.at(first);
  if (__builtin_mul_overflow(source.step, stride, &out->step)) {
    runtime.fail_unsupported("a range whose step does not fit 64 bits");
  }
  const bool backwards = stride < 0;
  const std::int64_t span = backwards ? first - last : last - first;
  const std::int64_t size = backwards ? -stride : stride;
  out->length = span <= 0 ? 0 : (span - 1) / size + 1;
  out->stop = source.at(last);
  return Value::of(out).with_origin(range.origin());
}

}  // namespace memdecay::jinja
