#include "model/chat_template/runtime.h"

#include <algorithm>

namespace memdecay::jinja {

Value Runtime::make_sequence(Kind kind, std::vector<Value> items, OriginId origin) {
  charge_work(items.size());
  auto* object = make<SequenceObject>();
  object->items = std::move(items);
  return Value::of(kind, object).with_origin(origin);
}

Value Runtime::make_pair(Value first, Value second) {
  std::vector<Value> items;
  items.push_back(std::move(first));
  items.push_back(std::move(second));
  return make_sequence(Kind::kTuple, std::move(items));
}

Value Runtime::make_string(Text text) {
  charge_characters(text.size());
  return Value::string(std::move(text));
}

OriginId Runtime::origin_id(const Origin& origin) {
  // Recent origins are asked for again and again; the table has a few entries a message.
  constexpr std::size_t kRecent = 32;
  const std::size_t stop = origins_.size() > kRecent ? origins_.size() - kRecent : 0;
  for (std::size_t i = origins_.size(); i > stop; --i) {
    if (origins_[i - 1] == origin) return static_cast<OriginId>(i - 1);
  }
  if (origin == origins_.front()) return kTemplateOrigin;
  origins_.push_back(origin);
  return static_cast<OriginId>(origins_.size() - 1);
}

void Runtime::charge_characters(std::uint64_t count) {
  characters_ += count;
  if (characters_ > limits_.characters) {
    fail(StatusCode::kResourceExhausted,
         fmt::format("the template builds more than {} characters", limits_.characters));
  }
  charge_work(1 + count / 16);
}

void Runtime::fail(StatusCode code, std::string message) const {
  throw TemplateFailure{code, std::move(message), line_};
}

void Runtime::fail_undefined(const Value& value) const {
  fail(StatusCode::kInvalidArgument, value.undefined_message());
}

void Runtime::fail_work() const {
  fail(StatusCode::kResourceExhausted,
       fmt::format("the template takes more than {} steps", limits_.work));
}

void Runtime::fail_depth() {
  --depth_;  // the guard that failed is never destroyed
  fail(StatusCode::kResourceExhausted,
       fmt::format("the template nests more than {} levels deep", limits_.depth));
}

}  // namespace memdecay::jinja
