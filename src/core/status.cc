#include "core/status.h"

namespace memdecay {

const char* status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kCorrupt:
      return "corrupt";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kIoError:
      return "input/output error";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message)
    : failure_(code == StatusCode::kOk
                   ? nullptr
                   : std::make_unique<Failure>(Failure{code, std::move(message)})) {}

Status::Status(const Status& other)
    : failure_(other.ok() ? nullptr : std::make_unique<Failure>(*other.failure_)) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) failure_ = other.ok() ? nullptr : std::make_unique<Failure>(*other.failure_);
  return *this;
}

const std::string& Status::message() const {
  static const std::string empty;
  return ok() ? empty : failure_->message;
}

Status Status::with_context(const std::string& context) const {
  MEMDECAY_CHECK(!ok());
  return Status(failure_->code, context + ": " + failure_->message);
}

}  // namespace memdecay
