#include "model/chat_template/loop_members.h"

#include "model/chat_template/attributes.h"
#include "model/chat_template/operators.h"

namespace memdecay::jinja {
namespace {

Value loop_cycle(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  if (arguments.positional.empty() || !arguments.keyword.empty()) {
    runtime.fail_argument("loop.cycle needs values to choose from");
  }
  return arguments.positional[self.loop().index % arguments.positional.size()];
}

Value loop_changed(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  if (!arguments.keyword.empty()) runtime.fail_argument("loop.changed takes no names");
  LoopObject& loop = self.loop();
  bool same = loop.changed_called && loop.changed.size() == arguments.positional.size();
  for (std::size_t i = 0; same && i < loop.changed.size(); ++i) {
    same = equals(runtime, loop.changed[i], arguments.positional[i]);
  }
  if (same) return Value::boolean(false);
  loop.changed_called = true;
  loop.changed = arguments.positional;
  return Value::boolean(true);
}

}  // namespace

bool find_loop_member(Runtime& runtime, const Value& loop, std::string_view name, Value* out) {
  const LoopObject& state = loop.loop();
  const auto index = static_cast<std::int64_t>(state.index);
  const auto length = static_cast<std::int64_t>(state.items.size());
  if (name == "index") {
    *out = Value::integer(index + 1);
  } else if (name == "index0") {
    *out = Value::integer(index);
  } else if (name == "revindex") {
    *out = Value::integer(length - index);
  } else if (name == "revindex0") {
    *out = Value::integer(length - index - 1);
  } else if (name == "first") {
    *out = Value::boolean(index == 0);
  } else if (name == "last") {
    *out = Value::boolean(index + 1 == length);
  } else if (name == "length") {
    *out = Value::integer(length);
  } else if (name == "depth") {
    *out = Value::integer(state.depth);
  } else if (name == "depth0") {
    *out = Value::integer(state.depth - 1);
  } else if (name == "previtem") {
    *out =
        index == 0 ? Value::undefined("there is no previous item") : state.items[state.index - 1];
  } else if (name == "nextitem") {
    *out = index + 1 == length ? Value::undefined("there is no next item")
                               : state.items[state.index + 1];
  } else if (name == "cycle") {
    *out = bind_method(runtime, loop, loop_cycle);
  } else if (name == "changed") {
    *out = bind_method(runtime, loop, loop_changed);
  } else {
    return false;
  }
  return true;
}

}  // namespace memdecay::jinja
