// Over 10,000 lines, token for token: the reference tokenizers' ids, made by make_golden.py.
#include "golden_test.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/tokenizer/tokenizer.h"

namespace memdecay {
namespace {

std::vector<nlohmann::json> read_json_lines(const std::string& path) {
  std::vector<nlohmann::json> records;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    records.push_back(nlohmann::json::parse(line));
  }
  return records;
}

// FNV-1a over the ids as little-endian words, low 24 bits, as make_golden.py writes it.
std::string hash24(const std::vector<TokenId>& ids) {
  std::uint32_t hash = 0x811C9DC5U;
  for (const TokenId id : ids) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((static_cast<std::uint32_t>(id) >> shift) & 0xFFU)) * 0x01000193U;
    }
  }
  return fmt::format("{:06x}", hash & 0xFFFFFFU);
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::string& text, bool control) {
  EncodeOptions options;
  options.control_everywhere = control;
  const auto tokens = tokenizer.encode(text, options);
  EXPECT_TRUE(tokens.ok()) << tokens.status().message();
  std::vector<TokenId> ids;
  for (const Token& token : *tokens) ids.push_back(token.id);
  return ids;
}

void check_lines(const Tokenizer& tokenizer, const nlohmann::json& record,
                 const std::vector<nlohmann::json>& lines) {
  const bool control = record.at("control").get<bool>();
  const auto hashes = record.at("hashes").get<std::string>();
  ASSERT_EQ(hashes.size(), 6 * lines.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto text = lines[i].get<std::string>();
    const std::vector<TokenId> ids = encode(tokenizer, text, control);
    const auto full = record.at("full").find(std::to_string(i));
    if (full != record.at("full").end()) {
      EXPECT_EQ(ids, full->get<std::vector<TokenId>>()) << "line " << i << ": " << lines[i];
    }
    if (hash24(ids) != hashes.substr(6 * i, 6) && ++wrong <= 5) {
      ADD_FAILURE() << "line " << i << ": " << lines[i] << " gives " << nlohmann::json(ids).dump();
    }
  }
  EXPECT_EQ(wrong, 0U);
}

class TokenizerGolden : public testing::TestWithParam<std::string> {};

TEST_P(TokenizerGolden, IdsEqualTheReference) {
  const auto lines = read_json_lines(golden_folder() + "/lines.jsonl");
  const auto records = read_json_lines(golden_folder() + "/" + GetParam() + ".jsonl");
  ASSERT_GE(lines.size(), 10000U);
  ASSERT_EQ(records.size(), 2U);
  int checked = 0;
  for (const nlohmann::json& name : records[0].at("models")) {
    auto vocabulary = golden_vocabulary(name.get<std::string>());
    if (!vocabulary) continue;
    ASSERT_TRUE(vocabulary->ok()) << vocabulary->status().message();
    const auto tokenizer = Tokenizer::create(std::move(*vocabulary).value());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    for (const nlohmann::json& record : records) check_lines(**tokenizer, record, lines);
    ++checked;
  }
  if (checked == 0) GTEST_SKIP() << "none of " << records[0].at("models") << " is on this machine";
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerGolden, testing::Values("smollm2", "qwen", "gemma3"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace memdecay
