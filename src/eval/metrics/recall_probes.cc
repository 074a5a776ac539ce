#include "eval/metrics/recall_probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/seeded_random.h"
#include "core/text_hash.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLongOutputBytes = 600;  // tool output whose middle is raw, not head

/// Codes and ids that were not given out before.
class Names {
 public:
  explicit Names(std::uint64_t seed) : random_(seed) {}

  std::string code() {
    return fresh([this] { return digits(6); });
  }
  /// `count` ids that share all but two digits; the first is the fact's.
  std::vector<std::string> family(std::size_t count) {
    const std::string stem = fresh([this] { return digits(4); });
    std::vector<std::string> ids;
    while (ids.size() < count) {
      const std::string id = stem + digits(2);
      if (used_.insert(id).second) ids.push_back("R-" + id);
    }
    return ids;
  }
  SeededRandom& random() { return random_; }

 private:
  std::string digits(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text.push_back(static_cast<char>('0' + random_.below(10)));
    return text;
  }
  template <typename Make>
  std::string fresh(const Make& make) {
    std::string text = make();
    while (!used_.insert(text).second) text = make();
    return text;
  }

  SeededRandom random_;
  std::set<std::string> used_;
};

/// Plants into one session.
class Planter {
 public:
  Planter(ChainedSession session, const ProbeOptions& options)
      : options_(options), names_(text_hash(session.id, options.seed)) {
    probed_.session = std::move(session);
    std::int32_t tokens = 0;
    for (const std::int32_t count : probed_.session.tokens_of) {
      begins_.push_back(tokens);
      tokens += count;
    }
    begins_.push_back(tokens);
  }

  ProbedSession run() {
    plant_instructions();
    plant_goal();
    for (const Region region : kRegions) {
      for (const double depth : options_.depths) plant_fact(region, depth);
    }
    return std::move(probed_);
  }

 private:
  ordered_json& messages() { return probed_.session.conversation.at("messages"); }
  std::string role(std::size_t i) { return messages()[i].at("role").get<std::string>(); }
  std::string& content(std::size_t i) {
    return messages()[i].at("content").get_ref<std::string&>();
  }
  std::int32_t total() const { return begins_.back(); }

  bool suits(Region region, std::size_t i) {
    switch (region) {
      case Region::kSystem:
        return role(i) == "system";
      case Region::kDecision:
      case Region::kRecent:
        return role(i) == "user" && i != first_user();
      case Region::kTool:
        return role(i) == "tool";
      case Region::kOrdinary:
        return role(i) == "tool" && content(i).size() >= kLongOutputBytes;
    }
    return false;
  }

  std::size_t first_user() {
    std::size_t i = 0;
    while (i < messages().size() && role(i) != "user") ++i;
    return i;
  }

  /// The suitable message nearest to this depth, among those not used for the region yet.
  std::size_t place(Region region, double depth) {
    const auto wanted = static_cast<std::int32_t>(std::lround(depth * total()));
    std::size_t best = messages().size();
    for (std::size_t i = 0; i < messages().size(); ++i) {
      const bool taken = region != Region::kSystem && taken_.contains({region, i});
      if (taken || !suits(region, i)) continue;
      if (best == messages().size() ||
          std::abs(begins_[i] - wanted) < std::abs(begins_[best] - wanted)) {
        best = i;
      }
    }
    return best;
  }

  void plant_fact(Region region, double depth) {
    if (region == Region::kSystem && depth != options_.depths.front()) return;  // one place only
    const std::size_t message = place(region, depth);
    if (message == messages().size()) {
      probed_.notes.push_back(fmt::format("{} has no place for a fact of region {} at depth {:.2f}",
                                          probed_.session.id, region_name(region), depth));
      return;
    }
    taken_.insert({region, message});
    std::vector<std::string> ids = names_.family(static_cast<std::size_t>(options_.decoys) + 1);
    const std::string fact = ids.front();
    names_.random().shuffle(ids);
    std::string answer, rows;
    for (const std::string& id : ids) {
      const std::string code = names_.code();
      if (id == fact) answer = code;
      rows += fmt::format("Record {}: code {}.\n", id, code);
    }
    write(region, message, rows);
    ask(region, message, fact, answer);
  }

  void write(Region region, std::size_t message, const std::string& rows) {
    std::string& text = content(message);
    switch (region) {
      case Region::kSystem:
        text += "\n\nRecords on file:\n" + rows;
        break;
      case Region::kDecision: {
        std::string decided;
        for (std::size_t at = 0; at < rows.size();) {
          const std::size_t end = rows.find('\n', at) + 1;
          decided += "Decision: " + rows.substr(at, end - at);
          at = end;
        }
        text += "\n" + decided;
        break;
      }
      case Region::kTool:
        text = rows + text;
        break;
      case Region::kRecent:
        text += "\nBy the way, I have these here:\n" + rows;
        break;
      case Region::kOrdinary: {
        const std::size_t line = text.find('\n', text.size() / 2);
        text.insert(line == std::string::npos ? text.size() : line + 1, rows);
        break;
      }
    }
  }

  void ask(Region region, std::size_t message, const std::string& id, const std::string& answer) {
    for (const double share : options_.ask_at) {
      RecallProbe probe;
      probe.kind = ProbeKind::kFact;
      probe.region = region;
      probe.number = facts_;
      probe.question = fmt::format("What is the code of record {}?", id);
      probe.reply = fmt::format("The code of record {} is {}", id, answer);
      probe.answer = answer;
      add(std::move(probe), message, share);
    }
    ++facts_;
  }

  /// Asks after the message where `share` of the session is over, if the fact stands before it.
  void add(RecallProbe probe, std::size_t message, double share) {
    const auto until = static_cast<std::int32_t>(std::lround(share * total()));
    std::size_t after = 0;
    while (after + 1 < messages().size() && begins_[after + 1] < until) ++after;
    // A question between a call and its result would break the conversation.
    while (after + 1 < messages().size() && role(after + 1) == "tool") ++after;
    if (after < message || (after == message && share < 1.0)) return;
    probe.planted_in = static_cast<std::int32_t>(message);
    probe.asked_after = static_cast<std::int32_t>(after);
    probe.depth = total() > 0 ? static_cast<double>(begins_[message]) / total() : 0.0;
    probe.age_tokens = begins_[after + 1] - begins_[message + 1];
    probed_.probes.push_back(std::move(probe));
  }

  void plant_goal() {
    const std::size_t message = first_user();
    if (message == messages().size()) return;
    const std::string code = names_.code();
    content(message) += fmt::format("\nThe reference of this whole task is {}.", code);
    for (const double share : options_.ask_at) {
      RecallProbe probe;
      probe.kind = ProbeKind::kGoal;
      probe.region = Region::kDecision;
      probe.question = "What is the reference of the whole task, as I told you at the start?";
      probe.reply = "The reference of the whole task is " + code;
      probe.answer = code;
      add(std::move(probe), message, share);
    }
  }

  void plant_instructions() {
    if (options_.instructions == 0 || messages().empty()) return;
    if (role(0) != "system") {
      probed_.notes.push_back(probed_.session.id + " has no policy text: no instruction probes");
      return;
    }
    content(0) += "\n\nStanding instructions:\n";
    for (std::int32_t i = 1; i <= options_.instructions; ++i) {
      const std::string word = "word-" + names_.code();
      content(0) += fmt::format("{}. Close a ticket of class {} with {}.\n", i, i, word);
      for (const double share : options_.ask_at) {
        RecallProbe probe;
        probe.kind = ProbeKind::kInstruction;
        probe.region = Region::kSystem;
        probe.number = i;
        probe.question = fmt::format("With which word must a ticket of class {} be closed?", i);
        probe.reply = fmt::format("A ticket of class {} is closed with {}", i, word);
        probe.answer = word;
        add(std::move(probe), 0, share);
      }
    }
  }

  const ProbeOptions& options_;
  Names names_;
  ProbedSession probed_;
  std::vector<std::int32_t> begins_;  // [messages + 1] tokens before each message
  std::set<std::pair<Region, std::size_t>> taken_;
  std::int32_t facts_ = 0;
};

Status check_options(const ProbeOptions& options) {
  const auto is_share = [](double share) { return share >= 0.0 && share <= 1.0; };
  const bool shares = std::all_of(options.depths.begin(), options.depths.end(), is_share) &&
                      std::all_of(options.ask_at.begin(), options.ask_at.end(), is_share);
  if (!shares)
    return Status(StatusCode::kInvalidArgument, "depths and questions lie between 0 and 1");
  if (options.decoys < 0 || options.decoys > 50 || options.instructions < 0)
    return Status(StatusCode::kInvalidArgument,
                  "there can be 0 to 50 decoys, and no fewer than 0 instructions");
  return Status();
}

}  // namespace

const char* probe_kind_name(ProbeKind kind) {
  constexpr std::array<const char*, 3> kNames = {"fact", "goal", "instruction"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<ProbedSession> plant_probes(ChainedSession session, const ProbeOptions& options) {
  MEMDECAY_RETURN_IF_ERROR(check_options(options));
  return Planter(std::move(session), options).run();
}

ordered_json asked_conversation(const ProbedSession& probed, const RecallProbe& probe) {
  ordered_json conversation = probed.session.conversation;
  ordered_json& messages = conversation.at("messages");
  const auto kept = static_cast<std::size_t>(probe.asked_after) + 1;
  while (messages.size() > kept) messages.erase(messages.size() - 1);
  messages.push_back({{"role", "user"}, {"content", probe.question}});
  messages.push_back({{"role", "assistant"}, {"content", probe.reply}});
  return conversation;
}

}  // namespace memdecay
