#include "eval/runs/chained_session.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/seeded_random.h"
#include "core/text_hash.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// An episode with its lengths.
struct Episode {
  const Trajectory* run = nullptr;
  std::size_t place = 0;  // in the shuffled order of its group
  std::size_t policy_messages = 0;
  std::vector<std::int32_t> tokens_of;  // [messages]
  std::int32_t policy_tokens = 0;
  std::int32_t body_tokens = 0;
};

std::size_t policy_messages_of(const Trajectory& run) {
  const ordered_json& messages = run.messages();
  std::size_t count = 0;
  while (count < messages.size() && messages[count].at("role") == "system") ++count;
  return count;
}

/// What episodes of one session have in common, as text.
std::string policy_key(const Trajectory& run) {
  std::string key = run.data_set;
  for (std::size_t i = 0; i < policy_messages_of(run); ++i) {
    key += '\n' + run.messages()[i].at("content").get<std::string>();
  }
  if (run.conversation.contains("tools")) key += '\n' + run.conversation.at("tools").dump();
  return key;
}

Result<Episode> measure(const Trajectory& run, const CountMessageTokens& count) {
  Episode episode;
  episode.run = &run;
  episode.policy_messages = policy_messages_of(run);
  Result<std::vector<std::int32_t>> tokens = count(run.conversation);
  if (!tokens.ok()) return tokens.status().with_context(run.source);
  episode.tokens_of = std::move(tokens).value();
  const auto body =
      episode.tokens_of.begin() + static_cast<std::ptrdiff_t>(episode.policy_messages);
  episode.policy_tokens = std::accumulate(episode.tokens_of.begin(), body, 0);
  episode.body_tokens = std::accumulate(body, episode.tokens_of.end(), 0);
  return episode;
}

/// Builds the sessions of one group of episodes.
class Chainer {
 public:
  Chainer(const ChainOptions& options, std::uint64_t seed, const CountMessageTokens& count,
          Chains& chains)
      : options_(options), random_(seed), count_(count), chains_(chains) {}

  Status run(std::vector<Episode> episodes) {
    random_.shuffle(episodes);
    for (std::size_t i = 0; i < episodes.size(); ++i) episodes[i].place = i;
    std::vector<Episode> short_ones;
    for (Episode& episode : episodes) {
      if (episode.policy_tokens + episode.body_tokens > options_.max_tokens) {
        MEMDECAY_RETURN_IF_ERROR(add_alone(episode));
      } else {
        short_ones.push_back(std::move(episode));
      }
    }
    while (!short_ones.empty()) MEMDECAY_RETURN_IF_ERROR(add_chain(short_ones));
    return Status();
  }

 private:
  static void begin(const Episode& episode, ChainedSession& session) {
    session.data_set = episode.run->data_set;
    session.conversation["messages"] = ordered_json::array();
    if (episode.run->conversation.contains("tools"))
      session.conversation["tools"] = episode.run->conversation.at("tools");
    for (std::size_t i = 0; i < episode.policy_messages; ++i) add_message(episode, i, -1, session);
  }

  static void add_message(const Episode& episode, std::size_t message, std::int32_t number,
                          ChainedSession& session) {
    session.conversation["messages"].push_back(episode.run->messages()[message]);
    session.sources.push_back({number, static_cast<std::int32_t>(message)});
    session.recorded.push_back(episode.run->recorded[message]);
    session.tokens_of.push_back(episode.tokens_of[message]);
    session.tokens += episode.tokens_of[message];
  }

  /// The first `messages` messages of the episode, its policy text aside.
  static void append(const Episode& episode, std::size_t messages, ChainedSession& session) {
    const auto number = static_cast<std::int32_t>(session.episodes.size());
    session.episodes.push_back(episode.run->id);
    session.tasks.push_back(episode.run->task);
    for (std::size_t i = episode.policy_messages; i < messages; ++i)
      add_message(episode, i, number, session);
  }

  Status add_alone(const Episode& episode) {
    std::int32_t tokens = 0;
    std::size_t messages = 0;
    while (messages < episode.tokens_of.size() &&
           tokens + episode.tokens_of[messages] <= options_.max_tokens) {
      tokens += episode.tokens_of[messages++];
    }
    if (messages <= episode.policy_messages + 1) {
      chains_.notes.push_back(
          fmt::format("{} was left out: its first messages alone are longer than {} tokens",
                      episode.run->id, options_.max_tokens));
      return Status();
    }
    ChainedSession session;
    begin(episode, session);
    append(episode, messages, session);
    session.cut_messages = static_cast<std::int32_t>(episode.tokens_of.size() - messages);
    chains_.notes.push_back(fmt::format("{} was cut after {} tokens: {} of {} messages fell off",
                                        episode.run->id, session.tokens, session.cut_messages,
                                        episode.tokens_of.size()));
    return finish(std::move(session));
  }

  /// One session from what is left; what it took is gone from `left`.
  Status add_chain(std::vector<Episode>& left) {
    put_frequent_tasks_first(left);
    const auto span = static_cast<std::size_t>(options_.max_tokens - options_.min_tokens) + 1;
    const auto target = options_.min_tokens + static_cast<std::int32_t>(random_.below(span));
    ChainedSession session;
    begin(left.front(), session);
    for (std::size_t i = 0; i < left.size() && session.tokens < target;) {
      if (fits(left[i], session, target)) {
        append(left[i], left[i].tokens_of.size(), session);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return finish(std::move(session));
  }

  /// Tasks with many episodes left come first: else the last sessions would be short, with nothing
  /// but episodes of the same tasks to choose from.
  static void put_frequent_tasks_first(std::vector<Episode>& left) {
    std::map<std::string, int> count;
    for (const Episode& episode : left) ++count[episode.run->task];
    std::sort(left.begin(), left.end(), [&](const Episode& a, const Episode& b) {
      return std::pair(-count[a.run->task], a.place) < std::pair(-count[b.run->task], b.place);
    });
  }

  /// Whether the session may take the episode: no task twice, and up to its target, or the maximum
  /// while it has not the minimum.
  bool fits(const Episode& episode, const ChainedSession& session, std::int32_t target) const {
    if (session.episodes.empty()) return true;
    const std::int32_t most = session.tokens < options_.min_tokens ? options_.max_tokens : target;
    const bool seen = std::find(session.tasks.begin(), session.tasks.end(), episode.run->task) !=
                      session.tasks.end();
    return !seen && session.tokens + episode.body_tokens <= most;
  }

  /// Counts once more, as a whole: templates write text of their own before the first message.
  Status finish(ChainedSession session) {
    MEMDECAY_ASSIGN_OR_RETURN(session.tokens_of, count_(session.conversation));
    session.tokens = std::accumulate(session.tokens_of.begin(), session.tokens_of.end(), 0);
    session.is_short = session.tokens < options_.min_tokens;
    session.id = fmt::format("{}/session{}", session.data_set, chains_.sessions.size());
    chains_.sessions.push_back(std::move(session));
    return Status();
  }

  const ChainOptions& options_;
  SeededRandom random_;
  const CountMessageTokens& count_;
  Chains& chains_;
};

}  // namespace

Split split_of_task(const std::string& task, const ChainOptions& options) {
  SeededRandom random(text_hash(task, options.seed));
  return random.unit() < options.development_share ? Split::kDevelopment : Split::kTest;
}

Result<Chains> chain_sessions(std::span<const Trajectory> runs, const CountMessageTokens& count,
                              const ChainOptions& options) {
  if (options.min_tokens < 1 || options.max_tokens < options.min_tokens) {
    return make_status(StatusCode::kInvalidArgument,
                       "sessions of {} to {} tokens cannot be made: the limits contradict each "
                       "other",
                       options.min_tokens, options.max_tokens);
  }
  std::map<std::string, std::vector<Episode>> groups;
  for (const Trajectory& run : runs) {
    if (options.split != Split::kAll && split_of_task(run.task, options) != options.split) continue;
    MEMDECAY_ASSIGN_OR_RETURN(Episode episode, measure(run, count));
    groups[policy_key(run)].push_back(std::move(episode));
  }
  Chains chains;
  for (auto& [key, episodes] : groups) {
    Chainer chainer(options, text_hash(key, options.seed), count, chains);
    MEMDECAY_RETURN_IF_ERROR(chainer.run(std::move(episodes)));
  }
  return chains;
}

}  // namespace memdecay
