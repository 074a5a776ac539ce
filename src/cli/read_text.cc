#include "cli/read_text.h"

#include <iostream>
#include <sstream>

#include "sys/whole_file.h"

namespace memdecay {

Result<std::string> read_text(const std::string& path) {
  if (path != "-") return read_file(path);
  std::ostringstream text;
  if (std::cin.peek() != std::istream::traits_type::eof()) text << std::cin.rdbuf();
  if (std::cin.bad() || text.bad())
    return Status(StatusCode::kIoError, "cannot read standard input");
  return std::move(text).str();
}

}  // namespace memdecay
