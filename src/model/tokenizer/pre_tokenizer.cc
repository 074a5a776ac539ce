#include "model/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "model/tokenizer/pre_patterns.h"
#include "model/tokenizer/unicode_class.h"
#include "model/tokenizer/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace memdecay {
namespace {

constexpr std::size_t kMaxJitStackBytes = 4U << 20;

struct FreePcre2 {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <typename T>
using Pcre2Pointer = std::unique_ptr<T, FreePcre2>;

PCRE2_SPTR subject_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::size_t invalid_run(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && utf8_char_length(text.substr(at)) == 0) ++at;
  return at;
}

void cut_at_invalid_bytes(std::string_view text, std::vector<std::uint32_t>& ends) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t valid = utf8_valid_prefix(text.substr(at));
    at += valid > 0 ? valid : invalid_run(text.substr(at));
    ends.push_back(static_cast<std::uint32_t>(at));
  }
}

}  // namespace

struct PreTokenizer::Stage {
  Pcre2Pointer<pcre2_code> code;
  bool jit = false;
};

struct PreTokenizer::Scratch::Matching {
  Pcre2Pointer<pcre2_match_data> match{pcre2_match_data_create(1, nullptr)};
  Pcre2Pointer<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
  Pcre2Pointer<pcre2_jit_stack> stack{
      pcre2_jit_stack_create(32U << 10, kMaxJitStackBytes, nullptr)};
};

PreTokenizer::Scratch::Scratch() : matching_(std::make_unique<Matching>()) {
  MEMDECAY_CHECK(matching_->match && matching_->context && matching_->stack);
  // Backtracking over a run of a million spaces is linear here; the default limit would stop it.
  pcre2_set_match_limit(matching_->context.get(), 0xFFFFFFFFU);
  pcre2_jit_stack_assign(matching_->context.get(), nullptr, matching_->stack.get());
}
PreTokenizer::Scratch::~Scratch() = default;

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

Result<PreTokenizer> PreTokenizer::create(const std::string& pre) {
  const PrePatterns patterns = pre_patterns(pre);
  if (patterns.stages.empty()) {
    return make_status(StatusCode::kUnsupported,
                       "the model wants the pre-tokenizer '{}', which this program does not know",
                       pre);
  }
  PreTokenizer tokenizer;
  tokenizer.whole_words_first_ = patterns.whole_words_first;
  for (const std::string_view published : patterns.stages) {
    const std::string pattern = expand_unicode_classes(published);
    int error = 0;
    PCRE2_SIZE offset = 0;
    Stage stage;
    stage.code.reset(pcre2_compile(subject_of(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                   &error, &offset, nullptr));
    MEMDECAY_CHECK(stage.code != nullptr);  // the patterns are ours
    stage.jit = pcre2_jit_compile(stage.code.get(), PCRE2_JIT_COMPLETE) == 0;
    tokenizer.stages_.push_back(std::move(stage));
  }
  return tokenizer;
}

Status PreTokenizer::split(std::string_view text, Scratch& scratch,
                           std::vector<std::uint32_t>& ends) const {
  ends.clear();
  cut_at_invalid_bytes(text, ends);
  for (const Stage& stage : stages_) {
    scratch.ends_.swap(ends);
    ends.clear();
    std::uint32_t begin = 0;
    for (const std::uint32_t end : scratch.ends_) {
      const std::string_view piece = text.substr(begin, end - begin);
      if (utf8_char_length(piece) == 0) {  // ill-formed bytes: no pattern may look at them
        ends.push_back(end);
      } else {
        MEMDECAY_RETURN_IF_ERROR(apply(stage, piece, begin, scratch, ends));
      }
      begin = end;
    }
  }
  return Status();
}

Status PreTokenizer::apply(const Stage& stage, std::string_view text, std::uint32_t base,
                           Scratch& scratch, std::vector<std::uint32_t>& ends) const {
  pcre2_match_data* match = scratch.matching_->match.get();
  pcre2_match_context* context = scratch.matching_->context.get();
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match);
  std::size_t done = 0;  // words up to here are in `ends`
  while (done < text.size()) {
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (stage.jit) {
      found = pcre2_jit_match(stage.code.get(), subject_of(text), text.size(), done,
                              PCRE2_NO_UTF_CHECK, match, context);
    }
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(stage.code.get(), subject_of(text), text.size(), done,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, context);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      return make_status(StatusCode::kResourceExhausted,
                         "the text cannot be cut into words (PCRE2 error {})", found);
    }
    MEMDECAY_CHECK(span[1] > span[0]);  // no shipped pattern matches nothing
    if (span[0] > done) ends.push_back(base + static_cast<std::uint32_t>(span[0]));
    ends.push_back(base + static_cast<std::uint32_t>(span[1]));
    done = span[1];
  }
  if (done < text.size()) ends.push_back(base + static_cast<std::uint32_t>(text.size()));
  return Status();
}

}  // namespace memdecay
