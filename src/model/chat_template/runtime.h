// Runtime: what one render owns: objects, the table of origins, and the limits.
//
// Templates come out of model files, which may be hostile: every loop, string and container is
// charged here, and a breach ends the render with kResourceExhausted. Failures are thrown as
// TemplateFailure. One thread.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "model/chat_template/origin.h"
#include "model/chat_template/render_limits.h"
#include "model/chat_template/template_failure.h"
#include "model/chat_template/value.h"

namespace memdecay::jinja {

class Runtime {
 public:
  explicit Runtime(const RenderLimits& limits) : limits_(limits) {}

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    charge_work(1);
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* raw = object.get();
    objects_.push_back(std::move(object));
    return raw;
  }
  Value make_sequence(Kind kind, std::vector<Value> items, OriginId origin = kTemplateOrigin);
  Value make_list(std::vector<Value> items) { return make_sequence(Kind::kList, std::move(items)); }
  Value make_iterator(std::vector<Value> items) {
    return make_sequence(Kind::kIterator, std::move(items));
  }
  Value make_pair(Value first, Value second);
  /// A string value; charged by its length.
  Value make_string(Text text);

  OriginId origin_id(const Origin& origin);
  const Origin& origin(OriginId id) const { return origins_[id]; }
  /// The one that may not be trusted, where one of the two may not.
  OriginId mix(OriginId a, OriginId b) const { return origins_[a].from_template() ? b : a; }

  void charge_work(std::uint64_t steps) {
    work_ += steps;
    if (work_ > limits_.work) fail_work();
  }
  void charge_characters(std::uint64_t count);

  [[noreturn]] void fail(StatusCode code, std::string message) const;
  template <typename... Args>
  [[noreturn]] void fail_argument(fmt::format_string<Args...> format, Args&&... args) const {
    fail(StatusCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void fail_unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    fail(StatusCode::kUnsupported, fmt::format(format, std::forward<Args>(args)...));
  }
  /// Raises what an undefined value says when it is used.
  [[noreturn]] void fail_undefined(const Value& value) const;

  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  std::optional<std::tm> clock;
  const RenderLimits& limits() const { return limits_; }

  /// Counts the levels of evaluation and of recursion over nested values.
  class Level {
   public:
    explicit Level(Runtime& runtime) : runtime_(runtime) {
      if (++runtime_.depth_ > runtime_.limits_.depth) runtime_.fail_depth();
    }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --runtime_.depth_; }

   private:
    Runtime& runtime_;
  };

 private:
  [[noreturn]] void fail_work() const;
  [[noreturn]] void fail_depth();

  RenderLimits limits_;
  std::vector<std::unique_ptr<Object>> objects_;
  std::vector<Origin> origins_ = {Origin{}};
  std::uint64_t work_ = 0;
  std::uint64_t characters_ = 0;
  int depth_ = 0;
  int line_ = 1;
};

}  // namespace memdecay::jinja
