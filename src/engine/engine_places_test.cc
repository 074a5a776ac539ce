// Sessions that outgrow the model's context: places within it, and what comes out.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int kContext = 256;
constexpr int kTurnTokens = 60;
constexpr int kAnswerTokens = 6;

class EnginePlacesTest : public testing::Test {
 protected:
  /// An engine whose budget holds `pages` pages of 16 tokens.
  EngineOptions options(int pages, const char* policy = "memdecay",
                        KvForms forms = KvForms::kF16) const {
    EngineOptions options = file_.options();
    options.policy = policy;
    options.kv_forms = forms;
    options.adaptive_decay = false;
    options.kv_budget_bytes = 96 * 1024 + file_.bytes_of_pages(pages);
    return options;
  }
  static RandomModelShape shape() {
    RandomModelShape shape;
    shape.context = kContext;
    return shape;
  }
  ModelFile file_{"llama", shape()};
};

Result<GenerationResult> ask(Engine& engine, Session& session, const Tokens& prompt,
                             int answer = kAnswerTokens) {
  GenerationRequest request;
  request.session = &session;
  request.prompt = prompt;
  request.max_new_tokens = answer;
  request.ignore_end = true;
  request.sampling.temperature = 0.0F;
  return engine.generate(std::move(request));
}

void expect_sound(const Engine& engine, const Session& session) {
  EXPECT_LE(session.sequence().rope_position(), kContext);
  expect_sound(engine);
}

/// Turns with the whole history in front; returns the answers.
std::vector<Tokens> play(Engine& engine, Session& session, Tokens& history, int turns) {
  std::vector<Tokens> answers;
  for (int turn = 0; turn < turns; ++turn) {
    const auto seed = static_cast<std::uint32_t>(history.size());
    const Tokens more = random_prompt(kTurnTokens, seed);
    history.insert(history.end(), more.begin(), more.end());
    const Result<GenerationResult> result = ask(engine, session, history);
    EXPECT_TRUE(result.ok() && result->status.ok()) << result.status().message();
    if (!result.ok()) return answers;
    EXPECT_EQ(result->tokens.size(), static_cast<std::size_t>(kAnswerTokens));
    EXPECT_LE(result->computed_tokens, kTurnTokens + kAnswerTokens);
    history.insert(history.end(), result->tokens.begin(), result->tokens.end());
    answers.push_back(result->tokens);
    expect_sound(engine, session);
  }
  return answers;
}

TEST_F(EnginePlacesTest, SessionsOutgrowTheContextUnderEveryPolicy) {
  for (const char* policy : {"memdecay", "sinks", "window", "uniform", "h2o", "random"}) {
    const auto engine = ModelFile::engine(options(14, policy));
    const auto session = engine->open_session().value();
    EXPECT_TRUE(engine->outgrows_context(*session));
    Tokens history;
    play(*engine, *session, history, 15);
    EXPECT_GT(session->sequence().size(), 3 * kContext) << policy;
    EXPECT_GT(session->sequence().rope_offset(), 2 * kContext) << policy;
  }
}

TEST_F(EnginePlacesTest, WithoutVirtualPositionsTheContextIsTheEnd) {
  EngineOptions off = options(14);
  off.virtual_positions = false;
  const auto engine = ModelFile::engine(off);
  const auto session = engine->open_session().value();
  EXPECT_FALSE(engine->outgrows_context(*session));
  Tokens history;
  play(*engine, *session, history, 3);
  const Tokens more = random_prompt(kTurnTokens, 9);
  history.insert(history.end(), more.begin(), more.end());
  EXPECT_EQ(ask(*engine, *session, history).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(session->sequence().rope_offset(), 0);
}

TEST_F(EnginePlacesTest, WhatNeverForgetsIsHeldToTheContext) {
  EngineOptions unlimited = file_.options();
  const auto engine = ModelFile::engine(unlimited);
  const auto session = engine->open_session().value();
  EXPECT_FALSE(engine->outgrows_context(*session));
  const Tokens prompt = random_prompt(kContext + 1, 1);
  EXPECT_EQ(ask(*engine, *session, prompt).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->extend(*session, prompt, kContext + 1, nullptr).code(),
            StatusCode::kInvalidArgument);
}

// The budget holds more tokens than the context, so positions are the reason to forget.
TEST_F(EnginePlacesTest, ABudgetLargerThanTheContextForgetsForPlaces) {
  for (const KvForms forms : {KvForms::kF16, KvForms::kAuto}) {
    const auto engine = ModelFile::engine(options(40, "memdecay", forms));
    const auto session = engine->open_session().value();
    Tokens history;
    play(*engine, *session, history, 12);
    EXPECT_GT(session->memory()->evicted_tokens(), 0);
    EXPECT_GT(session->sequence().rope_offset(), kContext);
  }
}

TEST_F(EnginePlacesTest, OnePromptLongerThanTheContextIsComputed) {
  const auto engine = ModelFile::engine(options(14));
  const auto session = engine->open_session().value();
  const Result<GenerationResult> result =
      ask(*engine, *session, random_prompt(3 * kContext, 2), kContext);
  ASSERT_TRUE(result.ok() && result->status.ok());
  EXPECT_EQ(result->tokens.size(), static_cast<std::size_t>(kContext));
  expect_sound(*engine, *session);
  // Teacher forcing goes on from there.
  EXPECT_TRUE(engine->extend(*session, random_prompt(kContext, 3), 1 << 20, nullptr).ok());
  expect_sound(*engine, *session);
}

TEST_F(EnginePlacesTest, ForksGoOnAlikeAndCutsBackFindTheirPlaces) {
  const auto engine = ModelFile::engine(options(40, "sinks"));
  const auto session = engine->open_session().value();
  Tokens history;
  play(*engine, *session, history, 8);
  ASSERT_GT(session->sequence().rope_offset(), 0);
  const auto fork = engine->fork_session(*session).value();
  EXPECT_EQ(fork->sequence().rope_position(), session->sequence().rope_position());
  // The budget has room for both, so neither makes the other forget.
  Tokens prompt = history;
  const Tokens more = random_prompt(20, 4);
  prompt.insert(prompt.end(), more.begin(), more.end());
  const Tokens first = ask(*engine, *session, prompt, 2)->tokens;
  EXPECT_EQ(ask(*engine, *fork, prompt, 2)->tokens, first);
  // An edit in what was evicted long ago: everything after it is computed again.
  Tokens edited(history.begin(), history.begin() + 100);
  edited.insert(edited.end(), more.begin(), more.end());
  EXPECT_TRUE(ask(*engine, *fork, edited)->status.ok());
  expect_sound(*engine, *fork);
  expect_sound(*engine, *session);
}

TEST_F(EnginePlacesTest, WindowedLayersKeepTheirPlaces) {
  RandomModelShape of = shape();
  of.layers = 7;
  const ModelFile file("gemma3", of);
  EngineOptions options = file.options();
  options.policy = "sinks";
  options.kv_forms = KvForms::kF16;
  options.kv_budget_bytes = 128 * 1024 + file.bytes_of_pages(14);
  const auto engine = ModelFile::engine(options);
  const auto session = engine->open_session().value();
  Tokens history;
  play(*engine, *session, history, 12);
  EXPECT_GT(session->sequence().rope_offset(), kContext);
}

}  // namespace
}  // namespace memdecay
