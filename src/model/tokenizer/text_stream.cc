#include "model/tokenizer/text_stream.h"

#include <utility>

#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/utf8.h"

namespace memdecay {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string TextStream::append(TokenId id) {
  return append_bytes(tokenizer_->decode(id, control_));
}

std::string TextStream::append_bytes(std::string_view bytes) {
  const std::string joined = std::exchange(held_, std::string()) + std::string(bytes);
  std::string_view rest = joined;
  std::string text;
  while (!rest.empty()) {
    const std::size_t valid = utf8_valid_prefix(rest);
    text += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Subpart subpart = utf8_subpart(rest);
    if (subpart.unfinished) {
      held_ = rest;
      break;
    }
    text += kReplacement;
    rest.remove_prefix(subpart.length);
  }
  return text;
}

std::string TextStream::flush() {
  if (held_.empty()) return {};
  held_.clear();
  return std::string(kReplacement);
}

}  // namespace memdecay
