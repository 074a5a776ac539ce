#include "cli/read_text.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

namespace memdecay {

Result<std::string> read_text(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    if (std::cin.peek() != std::istream::traits_type::eof()) text << std::cin.rdbuf();
    if (std::cin.bad() || text.bad())
      return Status(StatusCode::kIoError, "cannot read standard input");
    return std::move(text).str();
  }
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return make_status(StatusCode::kNotFound, "cannot read {}: {}", path, std::strerror(errno));
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (file.bad() || text.bad())
    return make_status(StatusCode::kIoError, "cannot read {}: {}", path, std::strerror(errno));
  return std::move(text).str();
}

}  // namespace memdecay
