// TemplateFailure: the exception that ends a parse or a render inside this module.
//
// Never leaves the module: ChatTemplate turns it into a Status with the line in front.
#pragma once

#include <string>

#include "core/status.h"

namespace memdecay::jinja {

struct TemplateFailure {
  StatusCode code;
  std::string message;
  int line;
};

}  // namespace memdecay::jinja
