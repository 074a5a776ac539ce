#include "eval/metrics/recall_scores.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <tuple>

#include "eval/metrics/bootstrap.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

constexpr std::array<const char*, 3> kThirds = {"0-33%", "33-67%", "67-100%"};

std::size_t third_of(double share) {
  return static_cast<std::size_t>(std::clamp(static_cast<int>(share * 3), 0, 2));
}

/// Sums of the probes of one kind, or of all, a session each.
template <typename Take>
Metric over_sessions(std::span<const std::vector<ProbeScore>> sessions, const char* kind,
                     const Take& take) {
  std::vector<EpisodeSum> sums;
  for (const std::vector<ProbeScore>& probes : sessions) {
    EpisodeSum sum;
    for (const ProbeScore& probe : probes) {
      if (kind != nullptr && probe.kind != kind) continue;
      const EpisodeSum one = take(probe);
      sum.numerator += one.numerator;
      sum.denominator += one.denominator;
    }
    sums.push_back(sum);
  }
  return bootstrap_ratio(sums);
}

EpisodeSum survival(const ProbeScore& probe) {
  return {probe.right_full && probe.right ? 1.0 : 0.0, probe.right_full ? 1.0 : 0.0};
}

ordered_json groups_json(std::span<const std::vector<ProbeScore>> sessions) {
  struct Counts {
    int probes = 0, right_full = 0, right = 0;
  };
  std::map<std::tuple<std::string, std::string, std::size_t, std::size_t>, Counts> groups;
  for (const std::vector<ProbeScore>& probes : sessions) {
    for (const ProbeScore& probe : probes) {
      Counts& counts =
          groups[{probe.kind, probe.region, third_of(probe.depth), third_of(probe.age)}];
      ++counts.probes;
      counts.right_full += probe.right_full ? 1 : 0;
      counts.right += probe.right_full && probe.right ? 1 : 0;
    }
  }
  ordered_json json = ordered_json::array();
  for (const auto& [group, counts] : groups) {
    json.push_back({{"kind", std::get<0>(group)},
                    {"region", std::get<1>(group)},
                    {"depth", kThirds[std::get<2>(group)]},
                    {"age", kThirds[std::get<3>(group)]},
                    {"probes", counts.probes},
                    {"right_full", counts.right_full},
                    {"right", counts.right}});
  }
  return json;
}

}  // namespace

ordered_json recall_json(std::span<const std::vector<ProbeScore>> sessions) {
  const bool any = std::any_of(sessions.begin(), sessions.end(),
                               [](const auto& probes) { return !probes.empty(); });
  if (!any) return ordered_json::object();
  const auto survives = [&](ProbeKind kind) {
    return metric_json(over_sessions(sessions, probe_kind_name(kind), survival));
  };
  ordered_json json;
  json["recall"] = survives(ProbeKind::kFact);
  json["goal_survival"] = survives(ProbeKind::kGoal);
  json["instruction_survival"] = survives(ProbeKind::kInstruction);
  json["recall_log_prob"] =
      metric_json(over_sessions(sessions, nullptr, [](const ProbeScore& probe) {
        return EpisodeSum{probe.log_prob, 1};
      }));
  json["recall_log_prob_full"] =
      metric_json(over_sessions(sessions, nullptr, [](const ProbeScore& probe) {
        return EpisodeSum{probe.log_prob_full, 1};
      }));
  json["recall_by"] = groups_json(sessions);
  return json;
}

}  // namespace memdecay
