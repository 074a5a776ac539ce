// How full pages are: plays conversations into a KvCache, message by message, all of them side by
// side, and reports utilisation and bytes a sequence for 16, 32 and 64-token pages. No forward pass
// is needed, since neither depends on what keys and values are.
//
//     kv_utilisation MODEL < CONVERSATIONS     one {"messages": [...]} a line; JSON on stdout
//
// After each round (one message of every conversation that has one left) the cache is looked at;
// "mean" is over the rounds, "end" when every conversation is whole. kv_utilisation.py prepares the
// conversations and stores the result.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/model.h"
#include "engine/model_catalogue.h"
#include "engine/prompt/prompt.h"
#include "kv/kv_cache.h"
#include "model/transformer/layer_groups.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;
/// A conversation's tokens after each of its messages.
using Turns = std::vector<Tokens>;

Result<Turns> render_turns(const Model& model, const nlohmann::ordered_json& conversation) {
  Turns turns;
  auto said = nlohmann::ordered_json::array();
  for (const auto& message : conversation.at("messages")) {
    said.push_back(message);
    MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt, render_prompt(model, {{"messages", said}}, false));
    turns.push_back(std::move(prompt.tokens));
  }
  return turns;
}

/// Brings a sequence from one turn's tokens to the next one's. Most templates only add; where one
/// writes earlier messages anew, what is common stays.
void play_turn(Sequence& sequence, const Tokens& before, const Tokens& now) {
  const auto [left, right] = std::mismatch(before.begin(), before.end(), now.begin(), now.end());
  const auto same = static_cast<Position>(left - before.begin());
  MEMDECAY_CHECK(sequence.try_truncate(same) || sequence.try_truncate(0));
  const auto missing = static_cast<std::int32_t>(now.size()) - sequence.size();
  MEMDECAY_CHECK(sequence.try_append(missing));
}

struct Look {
  double utilisation = 0;
  double bytes_per_sequence = 0;
};

Look look(const KvCache& cache, const std::vector<SequenceHandle>& sequences) {
  double bytes = 0;
  for (const auto& sequence : sequences) {
    const SequenceMemory memory = sequence->memory();
    bytes += static_cast<double>(memory.exclusive_bytes + memory.table_bytes);
  }
  return {cache.usage().utilisation(), bytes / static_cast<double>(sequences.size())};
}

nlohmann::ordered_json measure(const Model& model, const std::vector<Turns>& conversations,
                               int page_tokens) {
  KvCacheConfig config;
  const LayerGroups groups = make_layer_groups(model.config(), page_tokens, KvFormat::kF16);
  for (const auto& group : groups.groups) config.groups.push_back({group.layout, group.window});
  config.huge_pages = HugePages::kNever;
  const auto cache = KvCache::create(config).value();
  std::vector<SequenceHandle> sequences;
  for (std::size_t i = 0; i < conversations.size(); ++i)
    sequences.push_back(cache->try_create_sequence());
  Look sum, last;
  std::size_t rounds = 0;
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < conversations.size(); ++i) {
      if (rounds >= conversations[i].size()) continue;
      any = true;
      play_turn(*sequences[i], rounds == 0 ? Tokens() : conversations[i][rounds - 1],
                conversations[i][rounds]);
    }
    if (!any) break;
    MEMDECAY_CHECK(cache->validate().ok());
    last = look(*cache, sequences);
    sum.utilisation += last.utilisation;
    sum.bytes_per_sequence += last.bytes_per_sequence;
    ++rounds;
  }
  const auto count = static_cast<double>(rounds);
  nlohmann::ordered_json json;
  json["page_tokens"] = page_tokens;
  json["page_bytes"] = config.groups[0].layout.page_bytes();
  json["utilisation_end"] = last.utilisation;
  json["utilisation_mean"] = sum.utilisation / count;
  json["bytes_per_sequence_end"] = last.bytes_per_sequence;
  json["bytes_per_sequence_mean"] = sum.bytes_per_sequence / count;
  json["rounds"] = rounds;
  return json;
}

Status run(const char* model_name) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string path, resolve_model(model_name));
  MEMDECAY_ASSIGN_OR_RETURN(const auto model, Model::load_vocabulary_only(path));
  std::vector<Turns> conversations;
  std::size_t tokens = 0, longest = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const auto conversation = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!conversation.is_object() || !conversation.contains("messages"))
      return Status(StatusCode::kInvalidArgument, "a line is no {\"messages\": [...]}");
    MEMDECAY_ASSIGN_OR_RETURN(Turns turns, render_turns(*model, conversation));
    if (turns.empty()) continue;
    tokens += turns.back().size();
    longest = std::max(longest, turns.back().size());
    conversations.push_back(std::move(turns));
  }
  if (conversations.empty())
    return Status(StatusCode::kInvalidArgument, "stdin holds no conversation");
  nlohmann::ordered_json json;
  json["model"] = model_name;
  json["conversations"] = conversations.size();
  json["tokens"] = tokens;
  json["longest_tokens"] = longest;
  // What a slab per sequence, as long as the longest conversation, would be filled to at the end.
  json["contiguous_utilisation_end"] =
      static_cast<double>(tokens) / static_cast<double>(longest * conversations.size());
  for (const int page_tokens : {16, 32, 64})
    json["pages"].push_back(measure(*model, conversations, page_tokens));
  std::printf("%s\n", json.dump(2).c_str());
  return Status();
}

}  // namespace
}  // namespace memdecay

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: kv_utilisation MODEL < CONVERSATIONS\n");
    return 2;
  }
  const memdecay::Status status = memdecay::run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "kv_utilisation: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
