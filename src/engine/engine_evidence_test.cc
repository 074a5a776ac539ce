// What the engine tells its sessions' policies about their pages: how often, and about whom.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/extend_without_logits.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

/// Nine layers: a probe measures one of them.
RandomModelShape nine_layers() {
  RandomModelShape shape;
  shape.layers = 9;
  return shape;
}

class EngineEvidenceTest : public testing::Test {
 protected:
  std::unique_ptr<Engine> engine() const {
    EngineOptions options = file_.options();
    options.policy = "memdecay";
    options.kv_budget_bytes = 64 * 1024 + file_.bytes_of_pages(64);
    return ModelFile::engine(options);
  }
  static void extend(Engine& engine, Session& session, std::span<const TokenId> tokens) {
    const Status status = extend_without_logits(engine, session, tokens);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  /// What the policy says of every page: its score with all that went into it.
  static std::vector<std::string> explained(const Session& session) {
    std::vector<std::string> sentences;
    for (const SessionMemory::Page& page : session.memory()->pages())
      sentences.push_back(session.memory()->explain(page).sentence);
    return sentences;
  }
  /// The part of the page's score that evidence gave, as explain() writes it.
  static std::string evidence_of(const std::string& sentence) {
    const std::size_t begin = sentence.find("evidence");
    return sentence.substr(begin, sentence.find(", exact") - begin);
  }

  const ModelFile file_{"llama", nine_layers()};
  const std::vector<TokenId> prompt_ = random_prompt(64, 1);
  const std::vector<TokenId> answer_ = random_prompt(40, 2);
};

TEST_F(EngineEvidenceTest, DeletionErrorsAreMeasuredOnceInFourTokens) {
  const auto engine = this->engine();
  const auto session = engine->open_session().value();
  extend(*engine, *session, prompt_);
  std::string last = evidence_of(explained(*session).front());
  for (std::size_t i = 0; i < answer_.size(); ++i) {
    extend(*engine, *session, std::span(answer_).subspan(i, 1));
    const std::string now = evidence_of(explained(*session).front());
    EXPECT_EQ(now != last, (prompt_.size() + i + 1) % 4 == 0) << i << ": " << last << ", " << now;
    last = now;
  }
}

TEST_F(EngineEvidenceTest, WhoElseIsServedDoesNotChangeWhatASessionSees) {
  const auto alone = this->engine();
  const auto shared = this->engine();
  const auto session = alone->open_session().value();
  const auto same = shared->open_session().value();
  const auto other = shared->open_session().value();
  extend(*alone, *session, prompt_);
  extend(*shared, *same, prompt_);
  extend(*shared, *other, random_prompt(21, 3));
  for (std::size_t i = 0; i < answer_.size(); ++i) {
    const auto token = std::span(answer_).subspan(i, 1);
    extend(*alone, *session, token);
    extend(*shared, *same, token);
    if (i % 3 == 0) extend(*shared, *other, token);
  }
  EXPECT_EQ(explained(*session), explained(*same));
}

}  // namespace
}  // namespace memdecay
