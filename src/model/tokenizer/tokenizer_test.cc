#include "model/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/tiny_vocabulary.h"
#include "model/tokenizer/utf8.h"

namespace memdecay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Tokenizer> make(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(tokenizer).value();
}

std::vector<TokenId> ids_of(const std::vector<Token>& tokens) {
  std::vector<TokenId> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  return ids;
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, std::string_view text,
                            const EncodeOptions& options = {}) {
  return ids_of(tokenizer.encode(text, options).value());
}

std::vector<std::string> split(const std::string& pre, std::string_view text) {
  const auto pre_tokenizer = PreTokenizer::create(pre);
  EXPECT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status().message();
  PreTokenizer::Scratch scratch;
  std::vector<std::uint32_t> ends;
  EXPECT_TRUE(pre_tokenizer->split(text, scratch, ends).ok());
  std::vector<std::string> words;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : ends) {
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return words;
}

// The definition, word for word: join the best pair, look again. O(n^2) and more.
template <typename Rank>
std::vector<std::string> merge_naively(std::vector<std::string> symbols, const Rank& rank) {
  for (;;) {
    std::size_t best = symbols.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (!rank(symbols[i], symbols[i + 1])) continue;
      if (best == symbols.size() ||
          *rank(symbols[i], symbols[i + 1]) < *rank(symbols[best], symbols[best + 1])) {
        best = i;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<TokenId> bpe_oracle(const Vocabulary& vocabulary, const std::string& text) {
  std::map<std::string, TokenId> id_of;
  std::map<std::string, double> rank_of;
  for (std::size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    id_of[vocabulary.pieces[i]] = static_cast<TokenId>(i);
  }
  for (std::size_t i = 0; i < vocabulary.merges.size(); ++i) {
    rank_of[vocabulary.merges[i]] = static_cast<double>(i);
  }
  std::vector<TokenId> ids;
  for (const std::string& word : split(vocabulary.pre, text)) {
    std::vector<std::string> symbols;
    for (const char c : word) symbols.push_back(byte_alphabet_of_bytes(std::string_view(&c, 1)));
    const auto merged =
        merge_naively(symbols, [&](const std::string& left, const std::string& right) {
          const auto found = rank_of.find(left + " " + right);
          return found == rank_of.end() ? std::optional<double>() : found->second;
        });
    for (const std::string& symbol : merged) ids.push_back(id_of.at(symbol));
  }
  return ids;
}

std::vector<TokenId> sentencepiece_oracle(const Vocabulary& vocabulary, std::string_view text) {
  std::map<std::string, TokenId> id_of;
  for (std::size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    if (vocabulary.types[i] == TokenType::kNormal) {
      id_of[vocabulary.pieces[i]] = static_cast<TokenId>(i);
    }
  }
  std::vector<std::string> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_char_length(text.substr(at)), 1);
    symbols.emplace_back(text[at] == ' ' ? "\xE2\x96\x81" : text.substr(at, length));
    at += length;
  }
  const auto merged =
      merge_naively(symbols, [&](const std::string& left, const std::string& right) {
        const auto found = id_of.find(left + right);
        if (found == id_of.end()) return std::optional<double>();
        return std::optional<double>(-vocabulary.scores[static_cast<std::size_t>(found->second)]);
      });
  std::vector<TokenId> ids;
  for (const std::string& symbol : merged) {
    if (id_of.count(symbol) != 0) {
      ids.push_back(id_of[symbol]);
      continue;
    }
    const std::string bytes = symbol == "\xE2\x96\x81" ? " " : symbol;
    for (const char c : bytes) ids.push_back(3 + static_cast<unsigned char>(c));
  }
  return ids;
}

std::string random_text(std::mt19937& random, std::span<const std::string> parts, int most) {
  std::string text;
  const int count = std::uniform_int_distribution<int>(0, most)(random);
  for (int i = 0; i < count; ++i) {
    text += parts[std::uniform_int_distribution<std::size_t>(0, parts.size() - 1)(random)];
  }
  return text;
}

const std::vector<std::string> kParts = {"a",  "b",  "c",    "aa", " ",    "  ", "ab",  "1",
                                         "\n", "中", "文",   "é",  "😀",    ",",  "\t",  "a, ",
                                         "<",  "s",  "\xE4", ">",  "\xFF", "12", "aaaa"};

TEST(Tokenizer, BpeEqualsTheDefinition) {
  const Vocabulary vocabulary = tiny_bpe();
  const auto tokenizer = make(vocabulary);
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random, kParts, round % 60);
    ASSERT_EQ(encode(*tokenizer, text), bpe_oracle(vocabulary, text)) << text;
  }
}

TEST(Tokenizer, SentencePieceEqualsTheDefinition) {
  const Vocabulary vocabulary = tiny_sentencepiece();
  const auto tokenizer = make(vocabulary);
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random, kParts, round % 60);
    if (text.find("\n\n") != std::string::npos) continue;  // a user-defined piece
    ASSERT_EQ(encode(*tokenizer, text), sentencepiece_oracle(vocabulary, text)) << text;
  }
}

TEST(Tokenizer, RoundTripAndOffsetsCoverEveryByte) {
  for (const Vocabulary& vocabulary :
       {tiny_bpe("qwen2"), tiny_bpe("smollm"), tiny_sentencepiece()}) {
    const auto tokenizer = make(vocabulary);
    std::mt19937 random(3);
    for (int round = 0; round < 500; ++round) {
      const std::string text = random_text(random, kParts, 30);
      const auto tokens = tokenizer->encode(text, {}).value();
      EXPECT_EQ(tokenizer->decode(ids_of(tokens)), text);
      std::uint32_t at = 0;
      for (const Token& token : tokens) {
        EXPECT_EQ(token.begin, at);
        EXPECT_EQ(tokenizer->decode(token.id), text.substr(at, token.end - at));
        at = token.end;
      }
      EXPECT_EQ(at, text.size());
    }
  }
}

TEST(Tokenizer, ControlTokensOnlyInsideTheRanges) {
  const auto tokenizer = make(tiny_bpe());
  const TokenId a = *tokenizer->find_special("<|a|>");
  const TokenId ab = *tokenizer->find_special("<|ab|>");
  const std::string text = "<|a|>x<|ab|><|a|>";
  const auto count = [&](const EncodeOptions& options, TokenId id) {
    const auto ids = encode(*tokenizer, text, options);
    return std::count(ids.begin(), ids.end(), id);
  };
  EXPECT_EQ(count({}, a) + count({}, ab), 0);
  EncodeOptions all;
  all.control_everywhere = true;
  EXPECT_EQ(encode(*tokenizer, text, all), (std::vector<TokenId>{a, 'x', ab, a}));
  const ByteRange exact[] = {{6, 12}};
  EncodeOptions ranges;
  ranges.control_ranges = exact;
  EXPECT_EQ(count(ranges, ab), 1);
  EXPECT_EQ(count(ranges, a), 0);
  const ByteRange torn[] = {{0, 3}, {3, 5}, {7, 17}};  // no token across a border of ranges
  ranges.control_ranges = torn;
  EXPECT_EQ(count(ranges, ab), 0);
  EXPECT_EQ(count(ranges, a), 1);
}

TEST(Tokenizer, TextIsOneRunAcrossRangeBorders) {
  const auto tokenizer = make(tiny_bpe());
  const ByteRange middle[] = {{1, 3}};
  EncodeOptions options;
  options.control_ranges = middle;
  EXPECT_EQ(encode(*tokenizer, "aaaa", options), encode(*tokenizer, "aaaa"));
}

TEST(Tokenizer, WrongRangesAreAnError) {
  const auto tokenizer = make(tiny_bpe());
  const std::vector<std::vector<ByteRange>> wrong = {
      {{2, 1}}, {{0, 5}}, {{0, 2}, {1, 3}}, {{2, 3}, {0, 1}}};
  for (const auto& ranges : wrong) {
    EncodeOptions options;
    options.control_ranges = ranges;
    EXPECT_EQ(tokenizer->encode("abcd", options).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(Tokenizer, MarkersCanBeKeptOutOfContent) {
  for (const Vocabulary& vocabulary : {tiny_bpe(), tiny_sentencepiece()}) {
    const auto tokenizer = make(vocabulary);
    const TokenId tool = *tokenizer->find_special("<tool>");
    EXPECT_EQ(encode(*tokenizer, "<tool>"), std::vector<TokenId>{tool});
    EncodeOptions guarded;
    guarded.markers_in_ranges_only = true;
    const auto ids = encode(*tokenizer, "<tool>", guarded);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tool), 0);
    EXPECT_EQ(tokenizer->decode(ids), "<tool>");
  }
  const auto tokenizer = make(tiny_sentencepiece());
  EncodeOptions guarded;
  guarded.markers_in_ranges_only = true;  // white space is no marker
  EXPECT_EQ(encode(*tokenizer, "\n\n", guarded), encode(*tokenizer, "\n\n"));
  EXPECT_EQ(encode(*tokenizer, "\n\n").size(), 1U);
}

TEST(Tokenizer, MergesNeverSpellAControlToken) {
  const auto tokenizer = make(tiny_sentencepiece());  // "<s" and ">" are pieces, "<s>" is control
  const auto ids = encode(*tokenizer, "<s>");
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_EQ(tokenizer->piece(ids[0]), "<s");
}

TEST(Tokenizer, SpacePrefixHasNoWidth) {
  Vocabulary vocabulary = tiny_sentencepiece();
  vocabulary.add_space_prefix = true;
  const auto tokenizer = make(vocabulary);
  EncodeOptions options;
  options.control_everywhere = true;
  options.add_special = true;
  const auto tokens = tokenizer->encode("ab</s>c", options).value();
  ASSERT_EQ(tokens.size(), 5U);
  EXPECT_EQ(tokens[0], (Token{1, 0, 0}));
  EXPECT_EQ(tokenizer->piece(tokens[1].id),
            "\xE2\x96\x81"
            "ab");
  EXPECT_EQ(tokens[1].end, 2U);
  EXPECT_EQ(tokens[2].id, 2);
  EXPECT_EQ(tokenizer->piece(tokens[3].id), "\xE2\x96\x81");
  EXPECT_EQ(tokens[3].begin, tokens[3].end);
  EXPECT_EQ(tokens[4], (Token{tokens[4].id, 6, 7}));
  EXPECT_EQ(tokenizer->decode(ids_of(tokens), {.control = true}), "<s>ab</s>c");
  EXPECT_EQ(tokenizer->decode(ids_of(tokens)), "abc");
  EXPECT_TRUE(encode(*tokenizer, "").empty());
}

TEST(Tokenizer, LiteralSpaceMarkIsASpaceWithItsOwnOffsets) {
  const auto tokenizer = make(tiny_sentencepiece());
  const std::string text =
      "a\xE2\x96\x81"
      "a</s>";
  EXPECT_EQ(encode(*tokenizer, text), encode(*tokenizer, "a a</s>"));
  const ByteRange range[] = {{5, 9}};
  EncodeOptions options;
  options.control_ranges = range;
  const auto tokens = tokenizer->encode(text, options).value();
  ASSERT_EQ(tokens.size(), 3U);
  EXPECT_EQ(tokens[1].begin, 1U);
  EXPECT_EQ(tokens[1].end, 5U);
  EXPECT_EQ(tokens[2], (Token{2, 5, 9}));
}

TEST(Tokenizer, BytesThatTheVocabularyLacksAreDroppedBeforeMerging) {
  Vocabulary vocabulary = tiny_bpe();
  vocabulary.pieces[4] = "gone";
  const auto tokenizer = make(vocabulary);
  EXPECT_EQ(encode(*tokenizer, "\x04"), std::vector<TokenId>{});
  const auto tokens = tokenizer->encode("|\x04>", {}).value();
  ASSERT_EQ(tokens.size(), 1U);
  EXPECT_EQ(tokens[0].end, 3U);
  EXPECT_EQ(tokenizer->encode("|\x04>", {}).value(), tokens);  // not a matter of the cache
}

TEST(Tokenizer, DamagedVocabulariesAreNamed) {
  const auto failure = [](Vocabulary vocabulary) {
    return Tokenizer::create(std::move(vocabulary)).status();
  };
  EXPECT_EQ(failure(Vocabulary()).code(), StatusCode::kCorrupt);
  Vocabulary unknown_pre = tiny_bpe("no-such-pattern");
  EXPECT_EQ(failure(unknown_pre).code(), StatusCode::kUnsupported);
  EXPECT_THAT(failure(unknown_pre).message(), HasSubstr("no-such-pattern"));
  Vocabulary few_types = tiny_bpe();
  few_types.types.pop_back();
  EXPECT_EQ(failure(few_types).code(), StatusCode::kCorrupt);
  Vocabulary bad_merge = tiny_bpe();
  for (const char* merge : {"zz yy", "", " ", "a", "a ", "\xFF b"}) {
    bad_merge.merges[3] = merge;
    EXPECT_EQ(failure(bad_merge).code(), StatusCode::kCorrupt) << merge;
  }
  Vocabulary few_scores = tiny_sentencepiece();
  few_scores.scores.pop_back();
  EXPECT_EQ(failure(few_scores).code(), StatusCode::kCorrupt);
  Vocabulary bad_byte = tiny_sentencepiece();
  bad_byte.pieces[5] = "<0xZZ>";
  EXPECT_EQ(failure(bad_byte).code(), StatusCode::kCorrupt);
  Vocabulary bad_bos = tiny_bpe();
  bad_bos.bos = 100000;
  EXPECT_EQ(failure(bad_bos).code(), StatusCode::kCorrupt);
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreEmpty) {
  const auto tokenizer = make(tiny_bpe());
  EXPECT_EQ(tokenizer->decode(-1), "");
  EXPECT_EQ(tokenizer->decode(1 << 30), "");
  EXPECT_EQ(tokenizer->piece(-5), "");
}

TEST(Tokenizer, AMegabyteOfAnythingEndsSoon) {
  std::string words[5];
  for (std::size_t i = 0; i < 1000000; ++i) words[0] += static_cast<char>('a' + i * i % 3);
  words[1].assign(1000000, ' ');
  words[2].assign(1000000, 'A');
  for (int i = 0; i < 333333; ++i) words[3] += i % 3 == 0 ? "文" : "中";
  for (int i = 0; i < 500000; ++i) words[4] += "\xFF<";
  for (const Vocabulary& vocabulary : {tiny_bpe("qwen2"), tiny_sentencepiece()}) {
    const auto tokenizer = make(vocabulary);
    for (const std::string& word : words) {
      EXPECT_TRUE(tokenizer->decode(encode(*tokenizer, word)) == word);
    }
  }
}

TEST(Tokenizer, ThreadsGetTheSameIds) {
  const auto tokenizer = make(tiny_bpe());
  std::mt19937 random(5);
  const std::string text = random_text(random, kParts, 400);
  const auto expected = encode(*tokenizer, text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) EXPECT_EQ(encode(*tokenizer, text), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PreTokenizer, CutsAsPublished) {
  EXPECT_THAT(split("gpt-2", "Hello  world's 123"),
              ElementsAre("Hello", " ", " world", "'s", " 123"));
  EXPECT_THAT(split("smollm", "a  12 b"), ElementsAre("a", "  ", "1", "2", " b"));
  EXPECT_THAT(split("qwen2", "I'LL x\n\n  y123"),
              ElementsAre("I", "'LL", " x", "\n\n", " ", " y", "1", "2", "3"));
  EXPECT_THAT(split("llama-bpe", "12345 a"), ElementsAre("123", "45", " a"));
  EXPECT_THAT(split("tekken", "HTTPServer aB"), ElementsAre("HTTPServer", " a", "B"));
  EXPECT_THAT(split("gpt-4o", "camelCase's"), ElementsAre("camel", "Case's"));
  EXPECT_THAT(split("deepseek-coder", "ab 12\n中"), ElementsAre("ab", " ", "1", "2", "\n", "中"));
  EXPECT_THAT(split("qwen35", "e\u0301t"), ElementsAre("e\u0301t"));
  EXPECT_THAT(split("qwen2", "e\u0301t"), ElementsAre("e", "\u0301t"));
}

TEST(PreTokenizer, KnowsNewerLettersAndOldSpaces) {
  EXPECT_THAT(split("gpt-2", "a\U00031350"), ElementsAre("a\U00031350"));  // Unicode 15
  EXPECT_THAT(split("gpt-2", "a\U000105C0"), ElementsAre("a\U000105C0"));  // Unicode 16
  EXPECT_THAT(split("gpt-2", "!\u180E!"), ElementsAre("!\u180E!"));        // no white space
  EXPECT_THAT(split("qwen2", "a'\u017Fb"), ElementsAre("a", "'\u017F", "b"));
}

TEST(PreTokenizer, IllFormedBytesStandApart) {
  EXPECT_THAT(split("qwen2",
                    "ab\xFF\xFE"
                    "cd\xE4\xB8"),
              ElementsAre("ab", "\xFF\xFE", "cd", "\xE4\xB8"));
}

}  // namespace
}  // namespace memdecay
