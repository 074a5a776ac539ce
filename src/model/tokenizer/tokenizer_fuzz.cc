// Any bytes, any ranges: encode and decode give the bytes back, with both kinds and all patterns.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/check.h"
#include "model/tokenizer/text_stream.h"
#include "model/tokenizer/tiny_vocabulary.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/utf8.h"

namespace {

using namespace memdecay;

const std::vector<std::unique_ptr<Tokenizer>>& tokenizers() {
  static const auto all = [] {
    std::vector<std::unique_ptr<Tokenizer>> made;
    for (const char* pre : {"gpt-2", "default", "smollm", "qwen2", "qwen35", "llama-bpe", "tekken",
                            "gpt-4o", "deepseek-llm", "deepseek-coder", "deepseek-v3"}) {
      made.push_back(Tokenizer::create(tiny_bpe(pre)).value());
    }
    made.push_back(Tokenizer::create(tiny_sentencepiece()).value());
    Vocabulary prefixed = tiny_sentencepiece();
    prefixed.add_space_prefix = true;
    made.push_back(Tokenizer::create(std::move(prefixed)).value());
    return made;
  }();
  return all;
}

void check_offsets(const std::vector<Token>& tokens, std::size_t size) {
  std::uint32_t at = 0;
  for (const Token& token : tokens) {
    MEMDECAY_CHECK(token.begin == at && token.end >= token.begin);
    at = token.end;
  }
  MEMDECAY_CHECK(at == size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const Tokenizer& tokenizer = *tokenizers()[data[0] % tokenizers().size()];
  const std::string text(reinterpret_cast<const char*>(data) + 3, size - 3);
  const auto end = static_cast<std::uint32_t>(text.size());
  const ByteRange range[] = {{std::min<std::uint32_t>(data[1], end), end}};
  EncodeOptions options;
  options.control_ranges = range;
  options.markers_in_ranges_only = data[2] % 2 == 1;
  const auto tokens = tokenizer.encode(text, options);
  MEMDECAY_CHECK(tokens.ok());
  check_offsets(*tokens, text.size());
  std::vector<TokenId> ids;
  TextStream stream(tokenizer, true);
  for (const Token& token : *tokens) {
    ids.push_back(token.id);
    const std::string part = stream.append(token.id);
    MEMDECAY_CHECK(utf8_valid_prefix(part) == part.size());
  }
  const bool marks = text.find("\xE2\x96\x81") != std::string::npos;  // they come back as spaces
  if (tokenizer.kind() == VocabularyKind::kBpe || !marks) {
    MEMDECAY_CHECK(tokenizer.decode(ids, {.control = true}) == text);
  }
  return 0;
}
