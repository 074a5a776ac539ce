#include "eval/play/player.h"

#include <algorithm>
#include <utility>

#include "core/steady_clock.h"
#include "engine/memory/prompt_labels.h"
#include "engine/prompt/prompt_miss.h"
#include "engine/prompt/replay.h"
#include "eval/readers/run_format.h"
#include "eval/runs/template_fit.h"

namespace memdecay {
namespace {

/// The conversation as eval reads a run that holds it alone, in words that the template writes.
/// Regions stay as the client says them, right or wrong: render_prompt() judges them.
Result<nlohmann::ordered_json> read_alone(const Model& model,
                                          const nlohmann::ordered_json& conversation) {
  const std::string place = "the conversation";
  RunContents contents;
  MEMDECAY_RETURN_IF_ERROR(kOpenAiFormat.read({place, {conversation}, {place}}, contents));
  nlohmann::ordered_json read = std::move(contents.trajectories.front().conversation);
  const nlohmann::ordered_json& messages = conversation.at("messages");
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].contains("region")) read["messages"][i]["region"] = messages[i]["region"];
  return fit_to_template(model, std::move(read));
}

/// What an answer says: its text, else its calls.
std::string answer_text(const nlohmann::ordered_json& message) {
  const auto& content = message.at("content").get_ref<const std::string&>();
  return content.empty() && message.contains("tool_calls") ? message.at("tool_calls").dump()
                                                           : content;
}

std::int64_t evicted_tokens(const Session& session) {
  return session.memory() != nullptr ? session.memory()->evicted_tokens() : 0;
}

}  // namespace

Result<std::unique_ptr<Player>> Player::open(Engine& engine, nlohmann::ordered_json conversation,
                                             const PlayOptions& options) {
  MEMDECAY_ASSIGN_OR_RETURN(conversation, read_alone(engine.model(), conversation));
  const nlohmann::ordered_json& messages = conversation.at("messages");
  std::unique_ptr<Player> player(new Player(engine, options));
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].at("role") == "assistant") player->answers_.push_back(i);
  if (messages.back().at("role") != "assistant") player->answers_.push_back(messages.size());
  make_prefix_stable(conversation, options.stable_prefix);
  player->conversation_ = std::move(conversation);
  SessionOptions session;
  session.cache_salt = options.cache_salt;
  if (options.shrink_to_bytes > 0) {
    session.budget_bytes = options.shrink_to_bytes;
    session.evicts_when_asked = true;
  }
  MEMDECAY_ASSIGN_OR_RETURN(player->session_, engine.open_session(session));
  return player;
}

Result<Prompt> Player::render(std::size_t messages, bool add_generation_prompt) const {
  nlohmann::ordered_json head = conversation_;
  auto& list = head["messages"];
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(messages), list.end());
  MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt,
                            render_prompt(engine_.model(), head, add_generation_prompt));
  replay_held_ids(engine_.model(), session_->tokens(), prompt);
  return prompt;
}

Status Player::force(std::size_t answer, PlayedTurn& turn) {
  MEMDECAY_ASSIGN_OR_RETURN(const Prompt input, render(answer, true));
  MEMDECAY_ASSIGN_OR_RETURN(const Prompt whole, render(answer + 1, false));
  const std::span<const TokenId> tokens(whole.tokens);
  const auto parted =
      std::mismatch(input.tokens.begin(), input.tokens.end(), tokens.begin(), tokens.end());
  const auto input_end = static_cast<std::size_t>(parted.second - tokens.begin());
  MEMDECAY_ASSIGN_OR_RETURN(turn.labels, label_prompt(whole));
  if (session_->memory() != nullptr) engine_.label(*session_, turn.labels);
  const Engine::PrefixMatch match = engine_.match_prefix(*session_, tokens);
  const auto held = static_cast<std::size_t>(match.tokens);
  turn.cached_tokens = match.cached_tokens;
  turn.miss = describe_miss(engine_.model(), whole, match.miss);
  const std::int64_t begin = steady_now_ns();
  MEMDECAY_ASSIGN_OR_RETURN(turn.recomputed_tokens,
                            engine_.begin_turn(*session_, tokens.size() - held));
  turn.reused_tokens = static_cast<int>(std::min(held, input_end)) - turn.recomputed_tokens;
  turn.new_tokens = static_cast<int>(input_end - std::min(held, input_end));
  turn.computed_tokens = static_cast<int>(tokens.size() - held) + turn.recomputed_tokens;
  std::optional<TokenId> likeliest;  // what greedy decoding would write next
  const auto extend = [&](std::size_t first, std::size_t end) {
    return engine_.extend(*session_, tokens.subspan(first, end - first), static_cast<int>(end) - 1,
                          [&](int, std::span<const float> logits) {
                            likeliest = static_cast<TokenId>(
                                std::max_element(logits.begin(), logits.end()) - logits.begin());
                          });
  };
  if (held < input_end) MEMDECAY_RETURN_IF_ERROR(extend(held, input_end));
  turn.prompt_ns = steady_now_ns() - begin;
  for (std::size_t i = std::max(held, input_end); i < tokens.size(); ++i) {
    if (likeliest == tokens[i]) ++turn.agreed_tokens;
    const std::int64_t step = steady_now_ns();
    MEMDECAY_RETURN_IF_ERROR(extend(i, i + 1));
    turn.step_ns.push_back(steady_now_ns() - step);
  }
  turn.generated_tokens = static_cast<int>(turn.step_ns.size());
  turn.text = answer_text(conversation_["messages"][answer]);
  return Status();
}

Status Player::generate(std::size_t answer, PlayedTurn& turn) {
  MEMDECAY_ASSIGN_OR_RETURN(const Prompt input, render(answer, true));
  MEMDECAY_ASSIGN_OR_RETURN(PromptLabels labels, label_prompt(input));
  GenerationRequest request;
  request.session = session_.get();
  request.labels = labels;
  request.prompt = input.tokens;
  request.max_new_tokens = options_.generate_tokens;
  request.sampling = options_.sampling;
  MEMDECAY_ASSIGN_OR_RETURN(const GenerationResult result, engine_.generate(std::move(request)));
  MEMDECAY_RETURN_IF_ERROR(result.status);
  turn = turn_of(result, std::move(labels));
  turn.miss = describe_miss(engine_.model(), input, result.miss);
  conversation_["messages"][answer] = {{"role", "assistant"}, {"content", result.text}};
  return Status();
}

Result<std::optional<PlayedTurn>> Player::next() {
  if (next_ == answers_.size()) return std::optional<PlayedTurn>();
  PlayedTurn turn;
  const TurnMeter meter(engine_, *session_);
  const std::int64_t evicted_before = evicted_tokens(*session_);
  const std::size_t answer = answers_[next_];
  const bool recorded = options_.force_recorded && answer < conversation_["messages"].size();
  MEMDECAY_RETURN_IF_ERROR(recorded ? force(answer, turn) : generate(answer, turn));
  ++next_;
  if (options_.shrink_to_bytes > 0 && next_ == answers_.size())
    MEMDECAY_RETURN_IF_ERROR(engine_.shrink(*session_, options_.shrink_to_bytes));
  turn.turn = static_cast<int>(next_);
  // No result tells it of a forced answer, nor of what the session shrank by.
  turn.evicted_tokens = evicted_tokens(*session_) - evicted_before;
  meter.read(turn);
  return std::optional<PlayedTurn>(std::move(turn));
}

}  // namespace memdecay
