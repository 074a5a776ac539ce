#include "cli/conversation.h"

#include "cli/standard_output.h"
#include "engine/memory/prompt_labels.h"
#include "engine/prompt/prompt.h"
#include "engine/prompt/prompt_miss.h"
#include "engine/prompt/replay.h"

namespace memdecay {

Conversation::Conversation(Engine& engine, std::unique_ptr<Session> session,
                           nlohmann::ordered_json tools)
    : engine_(engine), session_(std::move(session)), tools_(std::move(tools)) {}

Result<std::unique_ptr<Conversation>> Conversation::open(Engine& engine,
                                                         nlohmann::ordered_json tools) {
  MEMDECAY_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, engine.open_session());
  return std::unique_ptr<Conversation>(
      new Conversation(engine, std::move(session), std::move(tools)));
}

Result<GenerationResult> Conversation::answer(
    const SamplingOptions& sampling, int max_new_tokens,
    const std::function<void(const std::string&)>& on_text) {
  nlohmann::ordered_json conversation = {{"messages", messages_}};
  if (!tools_.empty()) conversation["tools"] = tools_;
  MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt, render_prompt(engine_.model(), conversation, true));
  replay_held_ids(engine_.model(), session_->tokens(), prompt);
  MEMDECAY_ASSIGN_OR_RETURN(PromptLabels labels, label_prompt(prompt));
  const TurnMeter meter(engine_, *session_);
  GenerationRequest request;
  request.session = session_.get();
  request.labels = labels;
  request.prompt = prompt.tokens;
  request.max_new_tokens = max_new_tokens;
  request.sampling = sampling;
  request.on_text = on_text;
  MEMDECAY_ASSIGN_OR_RETURN(GenerationResult result,
                            generate_while_heard(engine_, std::move(request)));
  if (!result.status.ok()) return result.status;
  PlayedTurn turn = turn_of(result, std::move(labels));
  turn.turn = last_turn_.turn + 1;
  turn.miss = describe_miss(engine_.model(), prompt, result.miss);
  meter.read(turn);
  last_turn_ = std::move(turn);
  messages_.push_back({{"role", "assistant"}, {"content", result.text}});
  return result;
}

}  // namespace memdecay
