#include "model/tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "model/tokenizer/special_matcher.h"
#include "model/tokenizer/token_text.h"
#include "model/tokenizer/word_encoder.h"

namespace memdecay {
namespace {

// What is left of a vocabulary once its strings are packed.
struct Settings {
  VocabularyKind kind;
  TokenId bos, eos, eot;
  bool add_bos, add_eos, add_space_prefix;
};

Status check_special_id(TokenId id, const char* name, std::size_t count) {
  if (id >= -1 && (id < 0 || static_cast<std::size_t>(id) < count)) return Status();
  return make_status(StatusCode::kCorrupt,
                     "the {} token is number {}, but the vocabulary has {} tokens", name, id,
                     count);
}

Status check_ranges(std::span<const ByteRange> ranges, std::size_t text_bytes) {
  std::uint32_t last = 0;
  for (const ByteRange& range : ranges) {
    if (range.begin < last || range.end < range.begin || range.end > text_bytes) {
      return make_status(StatusCode::kInvalidArgument,
                         "the control range [{}, {}) is not sorted, overlaps or lies outside of a "
                         "text of {} bytes",
                         range.begin, range.end, text_bytes);
    }
    last = range.end;
  }
  return Status();
}

// A SentencePiece text with its literal U+2581 as spaces, which are the same symbol there.
class PlainSpaces {
 public:
  explicit PlainSpaces(std::string_view text) : plain_(unescape_spaces(text)) {
    for (std::size_t at = 0; at <= text.size();) {
      places_.push_back(static_cast<std::uint32_t>(at));
      at += text.substr(at).starts_with(kSpaceMark) ? kSpaceMark.size() : 1;
    }
  }

  std::string_view text() const { return plain_; }
  std::uint32_t original(std::uint32_t plain) const { return places_[plain]; }
  /// The plain range of the characters that lie wholly inside `range`.
  ByteRange plain(ByteRange range) const {
    const auto first = std::lower_bound(places_.begin(), places_.end(), range.begin);
    const auto last = std::upper_bound(first, places_.end(), range.end);
    const auto begin = static_cast<std::uint32_t>(first - places_.begin());
    const auto past = static_cast<std::uint32_t>(last - places_.begin());
    return {begin, std::max(begin, past == 0 ? 0 : past - 1)};
  }

 private:
  std::string plain_;
  std::vector<std::uint32_t> places_;  // by plain byte, and one for the end
};

}  // namespace

class Tokenizer::Engine {
 public:
  Engine(const Settings& wanted, TokenText token_text)
      : settings(wanted), text(std::move(token_text)), matcher(text) {}

  Status encode(std::string_view run, const SpecialMatcher::Permissions& permissions,
                std::vector<Token>& tokens) const;
  bool is_control(TokenId id) const {
    const TokenType type = text.type(id);
    return type == TokenType::kControl || type == TokenType::kUnknown;
  }
  bool has(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < text.size(); }

  Settings settings;
  TokenText text;
  SpecialMatcher matcher;
  std::optional<WordEncoder> words;

 private:
  Status encode_run(std::string_view whole, std::uint32_t begin, std::uint32_t end, bool prefix,
                    WordEncoder::Workspace& workspace, std::vector<Token>& tokens) const;
  std::unique_ptr<WordEncoder::Workspace> borrow() const;
  void give_back(std::unique_ptr<WordEncoder::Workspace> workspace) const;

  mutable std::mutex mutex_;  // guards idle_ only
  mutable std::vector<std::unique_ptr<WordEncoder::Workspace>> idle_;
};

std::unique_ptr<WordEncoder::Workspace> Tokenizer::Engine::borrow() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto workspace = std::move(idle_.back());
      idle_.pop_back();
      return workspace;
    }
  }
  return std::make_unique<WordEncoder::Workspace>();
}

void Tokenizer::Engine::give_back(std::unique_ptr<WordEncoder::Workspace> workspace) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(workspace));
}

// `prefix`: the run is encoded as if a space of no width stood before it.
Status Tokenizer::Engine::encode_run(std::string_view whole, std::uint32_t begin, std::uint32_t end,
                                     bool prefix, WordEncoder::Workspace& workspace,
                                     std::vector<Token>& tokens) const {
  if (!prefix) {
    if (begin == end) return Status();
    return words->encode(whole.substr(begin, end - begin), begin, workspace, tokens);
  }
  std::string spaced(1, ' ');
  spaced += whole.substr(begin, end - begin);
  const std::size_t first = tokens.size();
  MEMDECAY_RETURN_IF_ERROR(words->encode(spaced, 0, workspace, tokens));
  for (std::size_t i = first; i < tokens.size(); ++i) {
    tokens[i].begin = begin + std::max(tokens[i].begin, 1U) - 1;
    tokens[i].end = begin + std::max(tokens[i].end, 1U) - 1;
  }
  return Status();
}

Status Tokenizer::Engine::encode(std::string_view whole,
                                 const SpecialMatcher::Permissions& permissions,
                                 std::vector<Token>& tokens) const {
  auto workspace = borrow();
  Status status;
  std::uint32_t begin = 0;
  std::size_t range = 0;
  bool prefix = settings.add_space_prefix;
  while (begin < whole.size() && status.ok()) {
    const auto special = matcher.find(whole, begin, permissions, range);
    const bool control = special && is_control(special->id);
    const std::uint32_t end = special ? special->begin : static_cast<std::uint32_t>(whole.size());
    const bool has_text = begin < end || (special && !control);
    status = encode_run(whole, begin, end, prefix && has_text, *workspace, tokens);
    if (has_text) prefix = false;
    if (!special) break;
    tokens.push_back(*special);
    if (control) prefix = settings.add_space_prefix;
    begin = special->end;
  }
  give_back(std::move(workspace));
  return status;
}

Tokenizer::Tokenizer(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const Vocabulary& vocabulary) {
  const std::size_t count = vocabulary.pieces.size();
  MEMDECAY_RETURN_IF_ERROR(check_special_id(vocabulary.bos, "BOS", count));
  MEMDECAY_RETURN_IF_ERROR(check_special_id(vocabulary.eos, "EOS", count));
  MEMDECAY_RETURN_IF_ERROR(check_special_id(vocabulary.eot, "EOT", count));
  MEMDECAY_RETURN_IF_ERROR(check_special_id(vocabulary.unknown, "unknown", count));
  MEMDECAY_ASSIGN_OR_RETURN(TokenText text, TokenText::create(vocabulary));
  const bool spaced =
      vocabulary.kind == VocabularyKind::kSentencePiece && vocabulary.add_space_prefix;
  const Settings settings = {vocabulary.kind,    vocabulary.bos,     vocabulary.eos, vocabulary.eot,
                             vocabulary.add_bos, vocabulary.add_eos, spaced};
  auto engine = std::make_unique<Engine>(settings, std::move(text));
  MEMDECAY_ASSIGN_OR_RETURN(auto words, WordEncoder::create(vocabulary, engine->text));
  engine->words = std::move(words);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(engine)));
}

Result<std::vector<Token>> Tokenizer::encode(std::string_view text,
                                             const EncodeOptions& options) const {
  if (text.size() >= std::numeric_limits<std::uint32_t>::max()) {
    return make_status(StatusCode::kInvalidArgument, "a text of {} bytes is too long to tokenize",
                       text.size());
  }
  MEMDECAY_RETURN_IF_ERROR(check_ranges(options.control_ranges, text.size()));
  const Settings& settings = engine_->settings;
  std::vector<Token> tokens;
  if (options.add_special && settings.add_bos && settings.bos >= 0) {
    tokens.push_back({settings.bos, 0, 0});
  }
  SpecialMatcher::Permissions permissions = {options.control_ranges, options.control_everywhere,
                                             options.markers_in_ranges_only};
  if (settings.kind == VocabularyKind::kSentencePiece &&
      text.find(kSpaceMark) != std::string_view::npos) {
    const PlainSpaces plain(text);
    std::vector<ByteRange> ranges;
    for (const ByteRange& range : options.control_ranges) ranges.push_back(plain.plain(range));
    permissions.control_ranges = ranges;
    const std::size_t first = tokens.size();
    MEMDECAY_RETURN_IF_ERROR(engine_->encode(plain.text(), permissions, tokens));
    for (std::size_t i = first; i < tokens.size(); ++i) {
      tokens[i].begin = plain.original(tokens[i].begin);
      tokens[i].end = plain.original(tokens[i].end);
    }
  } else {
    MEMDECAY_RETURN_IF_ERROR(engine_->encode(text, permissions, tokens));
  }
  if (options.add_special && settings.add_eos && settings.eos >= 0) {
    const auto end = static_cast<std::uint32_t>(text.size());
    tokens.push_back({settings.eos, end, end});
  }
  return tokens;
}

std::string_view Tokenizer::decode(TokenId id, bool control) const {
  if (!engine_->has(id) || (!control && engine_->is_control(id))) return {};
  return engine_->text.bytes(id);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  std::string text;
  const bool strip = options.strip_space_prefix && engine_->settings.add_space_prefix;
  bool at_start = strip;
  for (const TokenId id : ids) {
    std::string_view bytes = decode(id, options.control);
    if (engine_->has(id) && engine_->is_control(id)) {
      at_start = strip;
    } else {
      if (at_start && bytes.starts_with(' ')) bytes.remove_prefix(1);
      at_start = false;
    }
    text += bytes;
  }
  return text;
}

std::string_view Tokenizer::piece(TokenId id) const {
  return engine_->has(id) ? engine_->text.piece(id) : std::string_view();
}

std::size_t Tokenizer::vocabulary_size() const {
  return engine_->text.size();
}
VocabularyKind Tokenizer::kind() const {
  return engine_->settings.kind;
}
bool Tokenizer::is_control(TokenId id) const {
  return engine_->has(id) && engine_->is_control(id);
}

std::optional<TokenId> Tokenizer::find_special(std::string_view text) const {
  const TokenId id = engine_->matcher.find_exact(text);
  return id >= 0 ? std::optional<TokenId>(id) : std::nullopt;
}

TokenId Tokenizer::bos() const {
  return engine_->settings.bos;
}
TokenId Tokenizer::eos() const {
  return engine_->settings.eos;
}
TokenId Tokenizer::eot() const {
  return engine_->settings.eot;
}

}  // namespace memdecay
