#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "engine/model_file_for_test.h"
#include "model/tokenizer/text_stream.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;

GenerationRequest request_for(Session& session, Tokens prompt, int new_tokens = 12) {
  GenerationRequest request;
  request.session = &session;
  request.prompt = std::move(prompt);
  request.max_new_tokens = new_tokens;
  request.sampling.temperature = 0.0F;
  return request;
}

Tokens joined(Tokens first, const Tokens& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The answer of a session that has seen nothing else.
GenerationResult fresh(Engine& engine, const Tokens& prompt, int new_tokens = 12) {
  const auto session = engine.open_session().value();
  return engine.generate(request_for(*session, prompt, new_tokens)).value();
}

void expect_empty(Engine& engine) {
  engine.forget_prefixes();
  EXPECT_TRUE(engine.cache().validate().ok()) << engine.cache().validate().message();
  EXPECT_EQ(engine.cache().sequence_count(), 0);
  EXPECT_EQ(engine.cache().budget().current_bytes(), engine.cache().overhead_bytes());
}

class EngineTest : public testing::TestWithParam<const char*> {
 protected:
  static RandomModelShape shape() {
    RandomModelShape shape;
    if (std::string_view(GetParam()) == "gemma3")
      shape.layers = 7;  // five slide, one sees all, one slides
    return shape;
  }
  bool slides() const { return std::string_view(GetParam()) == "gemma3"; }
  ModelFile file_{GetParam(), shape()};
};

TEST_P(EngineTest, TheSameSeedGivesTheSameTokens) {
  const auto engine = file_.engine();
  std::map<std::uint64_t, Tokens> by_seed;
  for (const std::uint64_t seed : {1U, 2U, 3U, 1U, 2U, 3U}) {
    const auto session = engine->open_session().value();
    GenerationRequest request = request_for(*session, random_prompt(20, 5), 24);
    request.sampling = SamplingOptions();
    request.sampling.temperature = 1.0F;
    request.sampling.seed = seed;
    const GenerationResult result = engine->generate(std::move(request)).value();
    EXPECT_EQ(result.reason, FinishReason::kLength);
    EXPECT_EQ(result.tokens.size(), 24U);
    const auto [known, is_new] = by_seed.emplace(seed, result.tokens);
    EXPECT_EQ(known->second, result.tokens) << "seed " << seed << ", new: " << is_new;
  }
  EXPECT_NE(by_seed[1], by_seed[2]);
  EXPECT_NE(by_seed[2], by_seed[3]);
  expect_empty(*engine);
}

TEST_P(EngineTest, RequestsInOneBatchAnswerAsEachAlone) {
  const auto engine = file_.engine();
  const std::vector<int> lengths = {1, 70, 15, 16, 17, 33, 130, 2};
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<GenerationResult> results(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sessions.push_back(engine->open_session().value());
    GenerationRequest request =
        request_for(*sessions[i], random_prompt(lengths[i], static_cast<std::uint32_t>(i)));
    request.on_done = [&results, i](const GenerationResult& result) { results[i] = result; };
    ASSERT_TRUE(engine->submit(std::move(request)).ok());
  }
  while (engine->step()) {
    const Status status = engine->cache().validate();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  sessions.clear();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const GenerationResult alone =
        fresh(*engine, random_prompt(lengths[i], static_cast<std::uint32_t>(i)));
    EXPECT_EQ(results[i].tokens, alone.tokens) << "request " << i;
    EXPECT_EQ(results[i].text, alone.text);
    EXPECT_EQ(results[i].computed_tokens, lengths[i] + 11) << "the last token is never computed";
  }
  expect_empty(*engine);
}

TEST_P(EngineTest, MoreStreamsThanLogitRowsAnswerAsEachAlone) {
  EngineOptions options = file_.options();
  options.batch_tokens = 200;
  const auto engine = ModelFile::engine(options);
  std::vector<std::unique_ptr<Session>> sessions;
  std::map<int, Tokens> answers;
  for (int i = 0; i < 90; ++i) {
    sessions.push_back(engine->open_session().value());
    GenerationRequest request = request_for(*sessions.back(), {i % 50, i / 50}, 3);
    request.on_done = [&answers, i](const GenerationResult& done) { answers[i] = done.tokens; };
    ASSERT_TRUE(engine->submit(std::move(request)).ok());
  }
  while (engine->step()) {
  }
  ASSERT_EQ(answers.size(), 90U);
  for (const auto& [i, tokens] : answers)
    EXPECT_EQ(tokens, fresh(*engine, {i % 50, i / 50}, 3).tokens) << i;
}

TEST_P(EngineTest, ALongPromptIsCutBetweenTheDecodeStepsOfAnother) {
  const auto engine = file_.engine();  // chunks of 24
  const auto talker = engine->open_session().value();
  const auto reader = engine->open_session().value();
  int talked = 0;
  GenerationRequest talk = request_for(*talker, random_prompt(3, 1), 100);
  talk.on_text = [&](const std::string&) { ++talked; };
  ASSERT_TRUE(engine->submit(std::move(talk)).ok());
  ASSERT_TRUE(engine->step());
  ASSERT_EQ(talked, 1);
  std::optional<GenerationResult> read;
  GenerationRequest request = request_for(*reader, random_prompt(240, 2), 1);
  request.on_done = [&](const GenerationResult& result) { read = result; };
  ASSERT_TRUE(engine->submit(std::move(request)).ok());
  for (int pass = 1; pass <= 10; ++pass) {
    EXPECT_FALSE(read.has_value());
    ASSERT_TRUE(engine->step());
    EXPECT_EQ(talked, 1 + pass) << "every pass moves the stream on";
    EXPECT_EQ(reader->tokens().size(), static_cast<std::size_t>(24 * pass));
  }
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->tokens, fresh(*engine, random_prompt(240, 2), 1).tokens);
}

TEST_P(EngineTest, ASecondTurnComputesOnlyWhatIsNew) {
  const auto engine = file_.engine();
  for (int length = 13; length <= 35; ++length) {  // two page borders, with the answer three
    const auto session = engine->open_session().value();
    const Tokens first = random_prompt(length, 7);
    const GenerationResult answer = engine->generate(request_for(*session, first, 5)).value();
    EXPECT_EQ(answer.computed_tokens, length + 4);
    EXPECT_EQ(session->tokens().size(), static_cast<std::size_t>(length) + 4);
    const Tokens second = joined(joined(first, answer.tokens), random_prompt(9, 8));
    const GenerationResult next = engine->generate(request_for(*session, second, 5)).value();
    EXPECT_EQ(next.prompt_tokens, length + 14);
    EXPECT_EQ(next.reused_tokens, length + 4);
    EXPECT_EQ(next.computed_tokens, 10 + 4) << "the last token of the answer, the turn, the answer";
    EXPECT_EQ(next.tokens, fresh(*engine, second, 5).tokens) << "length " << length;
    EXPECT_TRUE(engine->cache().validate().ok());
  }
  expect_empty(*engine);
}

TEST_P(EngineTest, AHistoryThatChangedIsCutBackToWhatIsCommon) {
  const auto engine = file_.engine();
  const Tokens base = random_prompt(90, 3);
  for (const int common : {0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 89, 90}) {
    const auto session = engine->open_session().value();
    ASSERT_TRUE(engine->generate(request_for(*session, base, 3)).ok());
    Tokens changed(base.begin(), base.begin() + common);
    changed.push_back(common < 90 ? (base[static_cast<std::size_t>(common)] + 1) % 50 : 49);
    changed = joined(std::move(changed), random_prompt(20, 4));
    const GenerationResult result = engine->generate(request_for(*session, changed)).value();
    EXPECT_EQ(result.tokens, fresh(*engine, changed).tokens) << "common " << common;
    // Windows keep 64 tokens more than the next query sees; what is cut deeper is computed anew.
    const bool all_kept = !slides() || common >= 92 - EngineOptions::kCutBackTokens;
    EXPECT_GE(result.reused_tokens, all_kept ? common : 0);
    EXPECT_TRUE(result.reused_tokens == 0 || result.reused_tokens >= common);
    EXPECT_EQ(result.reused_tokens + result.computed_tokens, result.prompt_tokens + 11);
    EXPECT_TRUE(engine->cache().validate().ok());
  }
  expect_empty(*engine);
}

TEST_P(EngineTest, TheSamePromptAgainComputesItsLastToken) {
  const auto engine = file_.engine();
  const auto session = engine->open_session().value();
  const Tokens prompt = random_prompt(40, 3);
  const GenerationResult first = engine->generate(request_for(*session, prompt)).value();
  const GenerationResult again = engine->generate(request_for(*session, prompt)).value();
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.reused_tokens, 39);
}

TEST_P(EngineTest, ForksThatPartAnswerAsIfAlone) {
  const auto engine = file_.engine();
  for (const int length : {1, 15, 16, 17, 40}) {
    auto parent = engine->open_session().value();
    const Tokens common = random_prompt(length, 1);
    ASSERT_TRUE(engine->extend(*parent, common, length, nullptr).ok());
    auto child = engine->fork_session(*parent).value();
    EXPECT_EQ(child->tokens(), common);
    const Tokens left = joined(common, random_prompt(21, 2));
    const Tokens right = joined(common, random_prompt(21, 3));
    GenerationResult left_result, right_result;
    GenerationRequest left_request = request_for(*parent, left);
    left_request.on_done = [&](const GenerationResult& result) { left_result = result; };
    GenerationRequest right_request = request_for(*child, right);
    right_request.on_done = [&](const GenerationResult& result) { right_result = result; };
    ASSERT_TRUE(engine->submit(std::move(left_request)).ok());
    ASSERT_TRUE(engine->submit(std::move(right_request)).ok());
    while (engine->step()) ASSERT_TRUE(engine->cache().validate().ok());
    EXPECT_EQ(left_result.reused_tokens, length);
    EXPECT_EQ(left_result.tokens, fresh(*engine, left).tokens);
    EXPECT_EQ(right_result.tokens, fresh(*engine, right).tokens);
    parent.reset();  // the child's tokens outlive those it came from
    const Tokens more = joined(joined(right, right_result.tokens), random_prompt(5, 9));
    EXPECT_EQ(engine->generate(request_for(*child, more)).value().tokens,
              fresh(*engine, more).tokens);
  }
  expect_empty(*engine);
}

TEST_P(EngineTest, ACancelledRequestLeavesASessionThatWorks) {
  const auto engine = file_.engine();
  for (const int steps : {0, 1, 2, 3, 6}) {  // before, within (64 a pass), and after the prompt
    const auto session = engine->open_session().value();
    std::optional<GenerationResult> result;
    GenerationRequest request = request_for(*session, random_prompt(150, 1), 50);
    request.on_done = [&](const GenerationResult& done) { result = done; };
    const RequestId id = engine->submit(std::move(request)).value();
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(engine->step());
    engine->cancel(id);
    engine->cancel(id);
    engine->cancel(RequestId(12345));
    EXPECT_FALSE(engine->step()) << "nothing is left";
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->reason, FinishReason::kCancelled);
    EXPECT_TRUE(result->status.ok());
    EXPECT_TRUE(engine->cache().validate().ok());
    EXPECT_EQ(session->tokens().size(), static_cast<std::size_t>(session->sequence().size()));
    EXPECT_EQ(static_cast<int>(session->tokens().size()), result->computed_tokens);
    const Tokens prompt = random_prompt(150, 1);
    EXPECT_EQ(engine->generate(request_for(*session, prompt)).value().tokens,
              fresh(*engine, prompt).tokens);
  }
  expect_empty(*engine);
}

TEST_P(EngineTest, TheContextHoldsPromptAndAnswerAndNoTokenMore) {
  EngineOptions options = file_.options();
  options.context_tokens = 40;
  const auto engine = ModelFile::engine(options);
  for (const int length : {1, 38, 39, 40}) {
    const auto session = engine->open_session().value();
    const GenerationResult result =
        engine->generate(request_for(*session, random_prompt(length, 1), 1000)).value();
    EXPECT_EQ(result.reason, FinishReason::kLength);
    EXPECT_EQ(result.prompt_tokens + static_cast<int>(result.tokens.size()), 40);
    EXPECT_LE(session->tokens().size(), 40U);
  }
  const auto session = engine->open_session().value();
  const auto refused = engine->generate(request_for(*session, random_prompt(41, 1)));
  EXPECT_EQ(refused.status().message(), "the prompt has 41 tokens, but the context holds 40");
  ASSERT_TRUE(engine->extend(*session, random_prompt(40, 1), 40, nullptr).ok());
  EXPECT_EQ(engine->extend(*session, random_prompt(1, 1), 40, nullptr).message(),
            "1 tokens after 40 do not fit the context of 40");
}

TEST_P(EngineTest, TeacherForcingGivesTheLogitsOfEachPosition) {
  const auto engine = file_.engine();
  const Tokens tokens = random_prompt(100, 6);
  const auto whole = engine->open_session().value();
  std::map<int, std::vector<float>> expected;
  const auto keep = [](auto& where) {
    return [&where](int position, std::span<const float> logits) {
      EXPECT_TRUE(where.emplace(position, std::vector(logits.begin(), logits.end())).second);
    };
  };
  ASSERT_TRUE(engine->extend(*whole, tokens, 0, keep(expected)).ok());
  EXPECT_EQ(expected.size(), 100U);
  const auto pieces = engine->open_session().value();
  std::map<int, std::vector<float>> actual;
  const std::span<const TokenId> all(tokens);
  ASSERT_TRUE(engine->extend(*pieces, all.first(37), 20, keep(actual)).ok());
  ASSERT_TRUE(engine->extend(*pieces, all.subspan(37, 1), 38, keep(actual)).ok());
  ASSERT_TRUE(engine->extend(*pieces, all.subspan(38), 38, keep(actual)).ok());
  EXPECT_EQ(actual.size(), 17U + 62U);
  for (const auto& [position, logits] : actual) EXPECT_EQ(logits, expected[position]) << position;
}

INSTANTIATE_TEST_SUITE_P(Architectures, EngineTest, testing::Values("llama", "qwen2", "gemma3"),
                         [](const auto& instance) { return std::string(instance.param); });

class EngineBudgetTest : public testing::Test {
 protected:
  /// An engine whose budget holds `pages` pages of 16 tokens beside the tables of the sessions.
  std::unique_ptr<Engine> engine_with_pages(int pages) {
    EngineOptions options = file_.options();
    options.kv_budget_bytes = 24576 + file_.bytes_of_pages(pages);
    options.policy = "none";  // what happens where nothing may be evicted
    return ModelFile::engine(options);
  }
  ModelFile file_{"llama"};
};

TEST_F(EngineBudgetTest, AFullBudgetEndsOneRequestAndLeavesItsNeighbour) {
  const auto engine = engine_with_pages(8);
  const auto neighbour = engine->open_session().value();
  const auto hungry = engine->open_session().value();
  GenerationResult neighbour_result, hungry_result;
  GenerationRequest small = request_for(*neighbour, random_prompt(10, 1), 22);
  small.on_done = [&](const GenerationResult& result) { neighbour_result = result; };
  GenerationRequest large = request_for(*hungry, random_prompt(90, 2), 200);
  large.on_done = [&](const GenerationResult& result) { hungry_result = result; };
  ASSERT_TRUE(engine->submit(std::move(small)).ok());
  ASSERT_TRUE(engine->submit(std::move(large)).ok());
  while (engine->step()) ASSERT_TRUE(engine->cache().validate().ok());
  EXPECT_EQ(neighbour_result.reason, FinishReason::kLength);
  EXPECT_EQ(hungry_result.reason, FinishReason::kNoMemory);
  EXPECT_EQ(hungry_result.status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(hungry_result.status.message().find("KV budget of"), std::string::npos);
  EXPECT_EQ(hungry->tokens().size(), 96U) << "six pages, full; two are the neighbour's";

  // Nothing is lost: what the session holds can be cut back and goes on as if nothing had been.
  ASSERT_TRUE(engine->truncate(*hungry, 80).ok());
  const Tokens prompt = random_prompt(90, 2);
  const GenerationResult again = engine->generate(request_for(*hungry, prompt, 4)).value();
  EXPECT_EQ(again.reused_tokens, 80);
  const auto roomy = file_.engine();
  EXPECT_EQ(again.tokens, fresh(*roomy, prompt, 4).tokens);
  EXPECT_EQ(neighbour_result.tokens, fresh(*roomy, random_prompt(10, 1), 22).tokens);
  const GenerationResult long_one = fresh(*roomy, prompt, 200);
  ASSERT_LE(hungry_result.tokens.size(), long_one.tokens.size());
  EXPECT_TRUE(std::equal(hungry_result.tokens.begin(), hungry_result.tokens.end(),
                         long_one.tokens.begin()));
}

TEST_F(EngineBudgetTest, APromptThatCanNeverFitIsRefusedAtOnce) {
  const auto engine = engine_with_pages(4);
  const auto session = engine->open_session().value();
  ASSERT_TRUE(engine->generate(request_for(*session, random_prompt(60, 1), 2)).ok());
  const Tokens held = session->tokens();
  const std::uint64_t bytes = engine->cache().budget().current_bytes();
  const auto refused = engine->submit(request_for(*session, random_prompt(97, 2)));
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("97 prompt tokens"), std::string::npos);
  EXPECT_EQ(session->tokens(), held);
  EXPECT_EQ(engine->cache().budget().current_bytes(), bytes);
  EXPECT_FALSE(engine->step());
}

TEST_F(EngineBudgetTest, SessionsWithoutRoomAreRefusedWithASentence) {
  const auto engine = engine_with_pages(1);
  std::vector<std::unique_ptr<Session>> sessions;
  for (;;) {
    auto session = engine->open_session();
    if (!session.ok()) {
      EXPECT_EQ(session.status().code(), StatusCode::kResourceExhausted);
      EXPECT_NE(session.status().message().find("no room for another session"), std::string::npos);
      break;
    }
    sessions.push_back(std::move(session).value());
    ASSERT_LT(sessions.size(), 10000U);
  }
  EXPECT_FALSE(engine->fork_session(*sessions.front()).ok());
  EXPECT_TRUE(engine->cache().validate().ok());
  sessions.clear();
  expect_empty(*engine);
}

TEST_F(EngineBudgetTest, TeacherForcingKeepsThePassesThatFitted) {
  const auto engine = engine_with_pages(6);
  const auto session = engine->open_session().value();
  const Status status = engine->extend(*session, random_prompt(150, 1), 150, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(session->tokens().size(), 64U);  // one pass; the second found two pages of four
  EXPECT_TRUE(engine->cache().validate().ok());
}

TEST(EngineRequestTest, ABadRequestIsRefusedAndHoldsNothing) {
  const ModelFile file("llama");
  const auto engine = file.engine();
  const auto session = engine->open_session().value();
  const std::uint64_t bytes = engine->cache().budget().current_bytes();
  const auto refusal = [&](GenerationRequest request) {
    const auto refused = engine->submit(std::move(request));
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(engine->cache().budget().current_bytes(), bytes);
    return refused.ok() ? std::string() : refused.status().message();
  };
  EXPECT_EQ(refusal(request_for(*session, {})), "the prompt has no tokens");
  EXPECT_EQ(refusal(request_for(*session, {1, 50})), "token 50 is outside the vocabulary of 50");
  EXPECT_EQ(refusal(request_for(*session, {-1})), "token -1 is outside the vocabulary of 50");
  EXPECT_EQ(refusal(request_for(*session, {1}, -1)), "max_new_tokens is -1, but must be 0 or more");
  EXPECT_EQ(refusal(request_for(*session, random_prompt(4097, 1))),
            "the prompt has 4097 tokens, but the context holds 4096");
  GenerationRequest request = request_for(*session, {1});
  request.sampling.top_p = 0.0F;
  EXPECT_EQ(refusal(std::move(request)), "top_p is 0, but must be above 0 and at most 1");
  EXPECT_EQ(engine->extend(*session, Tokens{50}, 0, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(engine->step());

  ASSERT_TRUE(engine->submit(request_for(*session, {1, 2})).ok());
  EXPECT_EQ(refusal(request_for(*session, {1, 2})), "this session already runs a request");
  EXPECT_FALSE(engine->extend(*session, Tokens{1}, 0, nullptr).ok());
  while (engine->step()) {
  }
}

TEST(EngineRequestTest, NoNewTokensComputeThePromptOnly) {
  const ModelFile file("llama");
  const auto engine = file.engine();
  const auto session = engine->open_session().value();
  const GenerationResult result =
      engine->generate(request_for(*session, random_prompt(70, 1), 0)).value();
  EXPECT_EQ(result.reason, FinishReason::kLength);
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(result.text, "");
  EXPECT_EQ(session->tokens(), random_prompt(70, 1));
}

TEST(EngineRequestTest, WhoeverIsDoneMaySubmitAgainAndCloseItsSession) {
  const ModelFile file("llama");
  const auto engine = file.engine();
  auto first = engine->open_session().value();
  auto second = engine->open_session().value();
  std::optional<GenerationResult> follow_up;
  GenerationRequest request = request_for(*first, random_prompt(5, 1));
  request.on_done = [&](const GenerationResult& done) {
    GenerationRequest next = request_for(*second, joined(random_prompt(5, 1), done.tokens));
    next.on_done = [&](const GenerationResult& result) { follow_up = result; };
    EXPECT_TRUE(engine->submit(std::move(next)).ok());
    first.reset();
  };
  ASSERT_TRUE(engine->submit(std::move(request)).ok());
  while (engine->step()) ASSERT_TRUE(engine->cache().validate().ok());
  ASSERT_TRUE(follow_up.has_value());
  EXPECT_EQ(follow_up->tokens.size(), 12U);
  second.reset();
  expect_empty(*engine);
}

TEST(EngineRequestTest, TextComesAsWholeCharactersAndAnEndTokenEndsIt) {
  // Tokens are single bytes of two- and three-byte characters: what the model says is mostly ill
  // formed, and every piece of it must still be UTF-8.
  RandomModelShape shape;
  for (int i = 0; i < 25; ++i) shape.pieces.push_back("\xC3\xA4");  // the byte E4 in the alphabet
  for (int i = 0; i < 24; ++i) shape.pieces.push_back("\xC4\xA7");  // the byte 85
  // Duplicate pieces keep their ids apart by number; the last one ends a text.
  for (std::size_t i = 0; i < shape.pieces.size(); ++i) {
    if (i % 3 == 1) shape.pieces[i] = "x" + std::to_string(i);
  }
  shape.eos = 49;
  const ModelFile file("llama", shape);
  const auto engine = file.engine();
  EXPECT_EQ(engine->model().end_tokens(), Tokens{49});
  bool ended = false, flushed = false;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto session = engine->open_session().value();
    GenerationRequest request = request_for(*session, random_prompt(4, seed), 60);
    request.sampling = SamplingOptions();
    request.sampling.temperature = 1.5F;
    request.sampling.seed = seed;
    std::string streamed;
    request.on_text = [&](const std::string& text) {
      EXPECT_NE(static_cast<unsigned char>(text[0]) & 0xC0U, 0x80U) << "a torn character";
      streamed += text;
    };
    const GenerationResult result = engine->generate(std::move(request)).value();
    EXPECT_EQ(streamed, result.text);
    TextStream expected(engine->model().tokenizer());
    std::string text;
    for (const TokenId token : result.tokens) text += expected.append(token);
    flushed |= !expected.held_back().empty();
    EXPECT_EQ(result.text, text + expected.flush());
    if (result.reason != FinishReason::kStop) continue;
    ended = true;
    EXPECT_EQ(result.end_token, 49);
    EXPECT_EQ(std::count(result.tokens.begin(), result.tokens.end(), 49), 0);
  }
  EXPECT_TRUE(ended && flushed);

  const auto session = engine->open_session().value();
  GenerationRequest request = request_for(*session, random_prompt(4, 0), 200);
  request.ignore_end = true;
  const GenerationResult result = engine->generate(std::move(request)).value();
  EXPECT_EQ(result.tokens.size(), 200U);
  EXPECT_EQ(result.reason, FinishReason::kLength);
}

TEST(EngineRequestTest, ThreadsPagesAndChunksDoNotChangeTheAnswer) {
  const ModelFile file("qwen3");
  const Tokens prompt = random_prompt(200, 3);
  std::optional<Tokens> expected;
  for (const int threads : {1, 2, 3}) {
    for (const int page_tokens : {16, 32, 64}) {
      EngineOptions options = file.options();
      options.threads = threads;
      options.page_tokens = page_tokens;
      options.batch_tokens = 7 + 40 * threads;
      const Tokens actual = fresh(*ModelFile::engine(options), prompt).tokens;
      if (!expected) expected = actual;
      EXPECT_EQ(actual, *expected) << threads << " threads, pages of " << page_tokens;
    }
  }
}

TEST(EngineOptionsTest, EveryFieldOutOfRangeIsNamed) {
  const ModelFile file("llama");
  const auto refusal = [&](auto change) {
    EngineOptions options = file.options();
    change(options);
    const auto engine = Engine::create(options);
    EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
    return engine.status().message();
  };
  EXPECT_EQ(refusal([](auto& options) { options.threads = -1; }),
            "threads is -1, but must be between 0 and 1024");
  EXPECT_EQ(refusal([](auto& options) { options.batch_tokens = 0; }),
            "batch_tokens is 0, but must be between 1 and 8192");
  EXPECT_EQ(refusal([](auto& options) { options.chunk_tokens = 0; }),
            "chunk_tokens is 0, but must be between 1 and 8192");
  EXPECT_EQ(refusal([](auto& options) { options.context_tokens = -1; }),
            "context_tokens is -1, but must be between 0 and 16777216");
  EXPECT_EQ(refusal([](auto& options) { options.page_tokens = 17; }),
            "page_tokens is 17, but must be 16, 32 or 64");
  EXPECT_EQ(refusal([](auto& options) { options.kv_budget_bytes = 0; }),
            "the KV budget must be above 0 bytes");
  EXPECT_EQ(refusal([](auto& options) { options.model_path.clear(); }), "no model is named");
  EngineOptions tiny = file.options();
  tiny.kv_budget_bytes = 1000;
  EXPECT_EQ(Engine::create(tiny).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace memdecay
