// TextStream: turns a stream of tokens into text that is complete UTF-8 at every step.
//
// A character may be spread over several tokens; its bytes are held back (at most three) until it
// is whole. Ill-formed bytes become U+FFFD, one for each maximal subpart as Unicode recommends, as
// soon as no further byte could complete them, or at flush(). One stream a sequence, one thread;
// the tokenizer must outlive it. Invariant: what it returned, joined, is the decoded bytes with
// their ill-formed parts replaced.
#pragma once

#include <string>
#include <string_view>

#include "core/id.h"

namespace memdecay {

class Tokenizer;

class TextStream {
 public:
  /// `control`: control tokens as their text, otherwise they add nothing.
  explicit TextStream(const Tokenizer& tokenizer, bool control = false)
      : tokenizer_(&tokenizer), control_(control) {}

  /// The text that the token completes; often empty.
  std::string append(TokenId id);
  std::string append_bytes(std::string_view bytes);
  /// What was held back, as U+FFFD; empty when nothing was. The stream can go on afterwards.
  std::string flush();
  /// Bytes of an unfinished character.
  std::string_view held_back() const { return held_; }

 private:
  const Tokenizer* tokenizer_;
  bool control_;
  std::string held_;
};

}  // namespace memdecay
