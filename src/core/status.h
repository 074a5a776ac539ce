// Status and Result: how an operation that may fail tells its caller why.
//
// A Status is either OK (no allocation, 8 bytes) or a code with one sentence for a person. A
// Result<T> is a T or a Status that is not OK. Both are [[nodiscard]]. Programmer errors are CHECKs
// instead, and "no room" is an optional. Values are free of threads: copy and move them as you
// like.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace memdecay {

enum class StatusCode {
  kOk,
  kInvalidArgument,    ///< the caller's input is wrong: a flag, a prompt, a JSON body
  kCorrupt,            ///< stored bytes are not what their format demands
  kUnsupported,        ///< well-formed, but this build does not know how; the message names what is
                       ///< missing
  kNotFound,           ///< a file, model, member or key that is not there
  kResourceExhausted,  ///< a budget or limit that cannot hold the request
  kIoError,            ///< the operating system said no
};

/// The English name of a code, e.g. "corrupt".
const char* status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  ///< OK
  Status(StatusCode code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return failure_ == nullptr; }
  StatusCode code() const { return ok() ? StatusCode::kOk : failure_->code; }
  /// One sentence without a full stop; empty when OK.
  const std::string& message() const;
  /// The same failure with "context: " before its message. REQUIRES: !ok().
  Status with_context(const std::string& context) const;

 private:
  struct Failure {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<Failure> failure_;
};

template <typename... Args>
Status make_status(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit on purpose, `return value;`
  Result(Status failure) : state_(std::move(failure)) {  // NOLINT: implicit on purpose
    MEMDECAY_CHECK(!std::get<Status>(state_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  /// OK, or why there is no value.
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  /// REQUIRES: ok().
  T& value() & {
    MEMDECAY_CHECK(ok());
    return std::get<T>(state_);
  }
  const T& value() const& {
    MEMDECAY_CHECK(ok());
    return std::get<T>(state_);
  }
  T&& value() && {
    MEMDECAY_CHECK(ok());
    return std::get<T>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace memdecay

#define MEMDECAY_CONCAT_INNER(a, b) a##b
#define MEMDECAY_CONCAT(a, b) MEMDECAY_CONCAT_INNER(a, b)

/// Returns from the calling function when the Status expression is not OK.
#define MEMDECAY_RETURN_IF_ERROR(expression)        \
  do {                                              \
    ::memdecay::Status status_or_ok = (expression); \
    if (!status_or_ok.ok()) return status_or_ok;    \
  } while (false)

/// `MEMDECAY_ASSIGN_OR_RETURN(auto x, f());`: x is the value, or the calling function returns the
/// failure.
#define MEMDECAY_ASSIGN_OR_RETURN(declaration, expression) \
  MEMDECAY_ASSIGN_OR_RETURN_INNER(MEMDECAY_CONCAT(result_, __LINE__), declaration, expression)
#define MEMDECAY_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                            \
  if (!result.ok()) return result.status();                              \
  declaration = std::move(result).value()
