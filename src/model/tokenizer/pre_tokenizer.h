// PreTokenizer: cuts a text into the words that byte-pair encoding works on.
//
// A list of PCRE2 patterns (UTF, Unicode properties, JIT where the system allows it) applied in
// stages, see pre_patterns.h. Ill-formed bytes end a stretch of text as the text's end would; each
// run of them is a word of its own. Immutable after create; any thread, each with its own Scratch.
// Linear for the patterns that are shipped, also on one long word or one long run of spaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace memdecay {

class PreTokenizer {
 public:
  /// One per thread at a time: what a match writes to.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class PreTokenizer;
    struct Matching;
    std::unique_ptr<Matching> matching_;
    std::vector<std::uint32_t> ends_;
  };

  /// kUnsupported, naming `pre`, when no pattern has that name.
  static Result<PreTokenizer> create(const std::string& pre);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  /// A word that is a piece as a whole is to be taken without merging.
  bool whole_words_first() const { return whole_words_first_; }

  /// Replaces `ends` by where each word ends; together they cover `text`, which is below 4 GiB.
  /// kResourceExhausted when PCRE2 gives up.
  Status split(std::string_view text, Scratch& scratch, std::vector<std::uint32_t>& ends) const;

 private:
  struct Stage;
  PreTokenizer();
  Status apply(const Stage& stage, std::string_view text, std::uint32_t base, Scratch& scratch,
               std::vector<std::uint32_t>& ends) const;

  std::vector<Stage> stages_;
  bool whole_words_first_ = false;
};

}  // namespace memdecay
