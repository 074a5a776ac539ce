// Random operations on sessions that share prefixes, against an oracle that knows only which texts
// were computed: what is found, what comes out, and what the shared pages hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "engine/engine.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;

constexpr std::size_t kPageTokens = 16;
constexpr std::size_t kMostSessions = 6;
constexpr int kOperations = 1000;

std::size_t common(const Tokens& a, const Tokens& b) {
  const auto parted = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(parted.first - a.begin());
}

class Walk {
 public:
  /// `budget_pages` 0: no budget.
  Walk(std::string_view architecture, const RandomModelShape& shape, int budget_pages,
       const char* policy)
      : file_(architecture, shape), budgeted_(budget_pages > 0) {
    EngineOptions options = file_.options();
    options.share_prefixes = false;
    alone_ = ModelFile::engine(options);
    options.share_prefixes = true;
    options.policy = policy;
    options.unbudgeted_prefix_bytes = std::uint64_t{1} << 40;
    if (budgeted_) options.kv_budget_bytes = 96 * 1024 + file_.bytes_of_pages(budget_pages);
    engine_ = ModelFile::engine(options);
    for (std::uint32_t seed = 0; seed < 3; ++seed) texts_.push_back(random_prompt(160, seed));
  }

  void step() {
    switch (number(8)) {
      case 0:
        return open();
      case 1:
        return fork();
      case 2:
        return close();
      case 3:
        return cut();
      default:
        return generate();
    }
  }

  void expect_all_sound() {
    expect_sound(*engine_);
    ASSERT_FALSE(testing::Test::HasFailure());
    expect_pages_unchanged();
  }

  void finish() {
    sessions_.clear();
    engine_->forget_prefixes();
    ASSERT_EQ(engine_->prefixes()->counters().nodes, 0);
    ASSERT_EQ(engine_->cache().budget().current_bytes(),
              engine_->cache().overhead_bytes() + engine_->other_budget_bytes());
  }

  int found = 0, lossy = 0, refused = 0, compared = 0;

 private:
  struct Open {
    std::unique_ptr<Session> session;
    int tenant;
  };
  static constexpr std::array<const char*, 2> kSalts = {"", "other"};

  std::size_t number(std::size_t bound) { return random_() % bound; }
  Open& some_session() { return sessions_[number(sessions_.size())]; }

  void open() {
    if (sessions_.size() == kMostSessions) return close();
    const int tenant = static_cast<int>(number(2));
    SessionOptions options;
    options.cache_salt = kSalts[static_cast<std::size_t>(tenant)];
    auto session = engine_->open_session(options);
    if (session.ok()) sessions_.push_back({std::move(session).value(), tenant});
  }

  void fork() {
    if (sessions_.empty() || sessions_.size() == kMostSessions) return open();
    const Open& parent = some_session();
    auto session = engine_->fork_session(*parent.session);
    if (session.ok()) sessions_.push_back({std::move(session).value(), parent.tenant});
  }

  void close() {
    if (sessions_.empty()) return;
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(number(sessions_.size())));
  }

  void cut() {
    if (sessions_.empty()) return;
    Session& session = *some_session().session;
    static_cast<void>(
        engine_->truncate(session, static_cast<int>(number(session.tokens().size() + 1))));
  }

  /// A beginning that others have too, or the session's own, an edit now and then, and new tokens.
  Tokens some_prompt(const Session& session) {
    const bool own = number(2) == 0 && !session.tokens().empty();
    Tokens prompt = own ? session.tokens() : texts_[number(texts_.size())];
    if (!own || number(3) == 0) prompt.resize(number(prompt.size() + 1));
    if (!prompt.empty() && number(5) == 0) prompt[number(prompt.size())] = 49;
    const Tokens more =
        random_prompt(1 + static_cast<int>(number(20)), static_cast<std::uint32_t>(number(4)));
    prompt.insert(prompt.end(), more.begin(), more.end());
    if (prompt.size() > 200) prompt.resize(200);
    return prompt;
  }

  /// What the naive oracle finds of the prompt's all but last tokens, in full pages that this
  /// tenant has computed, or a page that begins like the next one.
  std::size_t remembered(int tenant, const Tokens& prompt) const {
    const Tokens plan(prompt.begin(), prompt.end() - 1);
    std::size_t most = 0;
    for (const Tokens& text : computed_[static_cast<std::size_t>(tenant)])
      most = std::max(most, common(text, plan));
    return most;
  }

  void generate() {
    if (sessions_.empty()) return open();
    Open& open = some_session();
    Session& session = *open.session;
    const Tokens prompt = some_prompt(session);
    GenerationRequest request;
    request.session = &session;
    request.prompt = prompt;
    request.max_new_tokens = static_cast<int>(number(12));
    request.ignore_end = true;
    request.sampling.temperature = 0.0F;
    const std::size_t own = std::min(common(session.tokens(), prompt), prompt.size() - 1);
    const std::size_t others = remembered(open.tenant, prompt);
    const auto result = engine_->generate(request);
    const Tokens whole = session.tokens();  // remembered as far as it was exact
    computed_[static_cast<std::size_t>(open.tenant)].push_back(
        {whole.begin(),
         whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / kPageTokens * kPageTokens)});
    if (!result.ok() || !result->status.ok()) {
      ++refused;
      return;
    }
    const auto reused = static_cast<std::size_t>(result->reused_tokens);
    const auto cached = static_cast<std::size_t>(result->cached_tokens);
    ASSERT_LE(reused, std::max(own, others));
    ASSERT_LE(cached, others);
    if (!budgeted_ && engine_->cache().groups().size() == 1) {
      ASSERT_EQ(reused, std::max(own, others));
      ASSERT_EQ(cached, reused - std::min(own, reused));
    }
    found += cached > 0 ? 1 : 0;
    if (session.sequence().exact_tokens() != session.sequence().size()) {
      ++lossy;
      return;
    }
    const auto fresh = alone_->open_session().value();
    request.session = fresh.get();
    ASSERT_EQ(result->tokens, alone_->generate(request).value().tokens);
    ++compared;
  }

  /// A page's bytes are a function of the tokens up to its end, whoever computed it and whoever
  /// looks at it: nobody has written over it.
  void expect_pages_unchanged() {
    PrefixTree& tree = *const_cast<PrefixTree*>(engine_->prefixes());
    for (std::size_t tenant = 0; tenant < kSalts.size(); ++tenant) {
      if (computed_[tenant].empty()) continue;
      for (int i = 0; i < 3; ++i) {
        const Tokens& text = computed_[tenant][number(computed_[tenant].size())];
        const std::vector<std::int32_t> sizes(text.size() / kPageTokens, kPageTokens);
        const PrefixPin pin = tree.lookup_and_pin({kSalts[tenant], {}}, {text, sizes});
        Tokens path;
        for (const PrefixPage& page : pin.pages()) {
          path.insert(path.end(), page.tokens.begin(), page.tokens.end());
          for (std::size_t g = 0; g < page.pages.size(); ++g)
            if (page.pages[g].has_page()) expect_same_bytes(g, path, page.pages[g]);
        }
      }
    }
  }

  void expect_same_bytes(std::size_t group, const Tokens& path, const PageHandle& page) {
    const std::uint64_t bytes = page.pool().layout().page_bytes();
    const std::string_view text(reinterpret_cast<const char*>(page.base()), bytes);
    const std::size_t hash = std::hash<std::string_view>()(text);
    const auto [known, is_new] = hashes_.try_emplace({group, path}, hash);
    ASSERT_EQ(known->second, hash) << "group " << group << ", page that ends at " << path.size();
  }

  ModelFile file_;
  bool budgeted_;
  std::unique_ptr<Engine> alone_;
  std::unique_ptr<Engine> engine_;
  std::vector<Tokens> texts_;
  std::vector<Open> sessions_;
  std::array<std::vector<Tokens>, 2> computed_;  ///< by tenant: full pages
  std::map<std::pair<std::size_t, Tokens>, std::size_t> hashes_;
  std::mt19937 random_{7};
};

void walk(Walk& walk, int operations = kOperations) {
  for (int i = 0; i < operations; ++i) {
    walk.step();
    if (!testing::Test::HasFatalFailure()) walk.expect_all_sound();
    if (testing::Test::HasFatalFailure()) FAIL() << "operation " << i;
  }
  walk.finish();
}

RandomModelShape small() {
  RandomModelShape shape;
  shape.layers = 2;
  return shape;
}

TEST(EnginePrefixesWalk, WithoutABudgetEverythingThatWasComputedIsFound) {
  Walk operations("llama", small(), 0, "lru");
  walk(operations);
  EXPECT_GT(operations.found, 100);
  EXPECT_EQ(operations.lossy + operations.refused, 0);
}

TEST(EnginePrefixesWalk, UnderABudgetPrefixesComeAndGo) {
  Walk operations("llama", small(), 40, "none");
  walk(operations);
  EXPECT_GT(operations.found, 50);
  EXPECT_GT(operations.compared, 100);
  EXPECT_EQ(operations.lossy, 0);
}

TEST(EnginePrefixesWalk, SessionsThatForgetShareOnlyWhatIsExact) {
  Walk operations("llama", small(), 30, "memdecay");
  walk(operations);
  EXPECT_GT(operations.found, 50);
  EXPECT_GT(operations.lossy, 20);
  EXPECT_GT(operations.compared, 50);
}

TEST(EnginePrefixesWalk, WindowsComeAndGo) {
  RandomModelShape shape = small();
  shape.layers = 6;
  Walk operations("gemma3", shape, 40, "lru");
  walk(operations, kOperations / 4);
  EXPECT_GT(operations.found, 20);
  EXPECT_GT(operations.compared, 20);
}

}  // namespace
}  // namespace memdecay
