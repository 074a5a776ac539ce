// How well a model predicts a text beyond its trained context: one long session under a budget, its
// gaps closed virtually or not, beside sessions of half the context over the same tokens.
//
//     virtual_positions MODEL FILE TOKENS BUDGET POLICY moved|still|fresh     JSON on stdout
//
// moved: one session over all tokens. still: the same without virtual positions, the context as
// long as the text. fresh: a session for each quarter of the trained context, which reads the
// quarter before it, unlimited. Sums of -ln p per 1,024 tokens of the text come out;
// virtual_positions.py compares them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "core/log_softmax.h"
#include "core/units.h"
#include "engine/engine.h"
#include "engine/model_catalogue.h"
#include "engine/prompt/prompt.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

constexpr int kBinTokens = 1024;

struct Asked {
  std::string model, file;
  int tokens = 0;
  std::string budget, policy, mode;
};

/// Surprise by place in the text.
class Bins {
 public:
  explicit Bins(std::span<const TokenId> text) : text_(text) {}

  /// Logits after the token at `position` of the text.
  void score(int position, std::span<const float> logits) {
    const auto next = static_cast<std::size_t>(position) + 1;
    if (next >= text_.size()) return;
    const auto bin = next / static_cast<std::size_t>(kBinTokens);
    if (bin >= sums_.size()) sums_.resize(bin + 1), counts_.resize(bin + 1);
    const auto logit = static_cast<double>(logits[static_cast<std::size_t>(text_[next])]);
    sums_[bin] += log_sum_exp(logits) - logit;
    ++counts_[bin];
  }
  nlohmann::ordered_json json() const {
    auto bins = nlohmann::ordered_json::array();
    for (std::size_t bin = 0; bin < sums_.size(); ++bin)
      bins.push_back(
          {{"first_token", bin * kBinTokens}, {"tokens", counts_[bin]}, {"nll", sums_[bin]}});
    return bins;
  }

 private:
  std::span<const TokenId> text_;
  std::vector<double> sums_;
  std::vector<int> counts_;
};

Result<std::vector<TokenId>> read_tokens(const Model& model, const Asked& asked) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string text, read_file(asked.file));
  MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt, raw_prompt(model, text));
  const auto wanted = static_cast<std::size_t>(asked.tokens);
  if (prompt.tokens.size() < wanted)
    return make_status(StatusCode::kInvalidArgument, "{} has {} tokens, {} are wanted", asked.file,
                       prompt.tokens.size(), wanted);
  prompt.tokens.resize(wanted);
  return std::move(prompt.tokens);
}

Status run_fresh(Engine& engine, std::span<const TokenId> text, Bins& bins) {
  const int quarter = engine.model().config().context_length / 4;
  const int size = static_cast<int>(text.size());
  for (int begin = 0; begin < size; begin += quarter) {
    const int first = std::max(0, begin - quarter), end = std::min(size, begin + quarter);
    MEMDECAY_ASSIGN_OR_RETURN(const auto session, engine.open_session());
    const auto part =
        text.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
    MEMDECAY_RETURN_IF_ERROR(engine.extend(*session, part, std::max(0, begin - first - 1),
                                           [&](int position, std::span<const float> logits) {
                                             // The last logits of a part predict the next part's
                                             // first token, and are asked for there.
                                             if (first + position + 1 < end)
                                               bins.score(first + position, logits);
                                           }));
  }
  return Status();
}

Result<nlohmann::ordered_json> measure(const Asked& asked) {
  EngineOptions options;
  MEMDECAY_ASSIGN_OR_RETURN(options.model_path, resolve_model(asked.model));
  const bool fresh = asked.mode == "fresh";
  options.policy = fresh ? "none" : asked.policy;
  options.virtual_positions = asked.mode == "moved";
  if (asked.mode == "still") options.context_tokens = asked.tokens;
  if (!fresh) {
    MEMDECAY_ASSIGN_OR_RETURN(options.kv_budget_bytes, parse_bytes(asked.budget));
  }
  options.adaptive_decay = false;
  options.share_prefixes = false;
  MEMDECAY_ASSIGN_OR_RETURN(const auto engine, Engine::create(options));
  MEMDECAY_ASSIGN_OR_RETURN(const auto text, read_tokens(engine->model(), asked));
  Bins bins(text);
  const auto begin = std::chrono::steady_clock::now();
  nlohmann::ordered_json json = {{"mode", asked.mode},
                                 {"trained_context", engine->model().config().context_length}};
  if (fresh) {
    MEMDECAY_RETURN_IF_ERROR(run_fresh(*engine, text, bins));
  } else {
    MEMDECAY_ASSIGN_OR_RETURN(const auto session, engine->open_session());
    MEMDECAY_RETURN_IF_ERROR(engine->extend(
        *session, text, 0,
        [&](int position, std::span<const float> logits) { bins.score(position, logits); }));
    json["positions"] = session->sequence().rope_position();
    json["evicted_tokens"] = session->memory()->evicted_tokens();
    json["pages"] = session->memory()->pages().size();
  }
  json["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  json["bins"] = bins.json();
  return json;
}

}  // namespace
}  // namespace memdecay

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr,
                 "usage: virtual_positions MODEL FILE TOKENS BUDGET POLICY moved|still|fresh\n");
    return 2;
  }
  const auto json =
      memdecay::measure({argv[1], argv[2], std::atoi(argv[3]), argv[4], argv[5], argv[6]});
  if (!json.ok()) {
    std::fprintf(stderr, "virtual_positions: %s\n", json.status().message().c_str());
    return 1;
  }
  std::printf("%s\n", json->dump().c_str());
  return 0;
}
