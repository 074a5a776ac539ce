// tau-bench results: [{task_id, trial, traj: [chat messages]}], the policy as the first message.
#include <array>

#include "core/ascii.h"
#include "eval/readers/chat_messages.h"
#include "eval/readers/run_format.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

bool recognise(const ordered_json& record) {
  return record.is_object() && record.contains("traj");
}

/// The branch of service that a policy text names in its first line.
std::string service_of(const Trajectory& trajectory) {
  constexpr std::array<const char*, 3> kBranches = {"airline", "retail", "telecom"};
  const ordered_json& first = trajectory.messages().front();
  if (first.at("role") != "system") return "service";
  const std::string& policy = first.at("content").get_ref<const std::string&>();
  const std::string heading = lower_case(policy.substr(0, policy.find('\n')));
  for (const char* branch : kBranches) {
    if (heading.find(branch) != std::string::npos) return branch;
  }
  return "service";
}

Status read(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    const ordered_json& record = document.records[i];
    MEMDECAY_ASSIGN_OR_RETURN(Trajectory trajectory,
                              trajectory_of(record, "traj", document.places[i]));
    trajectory.data_set = service_of(trajectory);
    trajectory.format = "tau_bench";
    const std::string task = label_member(record, "task_id");
    trajectory.task = trajectory.data_set + "-" + (task.empty() ? std::to_string(i) : task);
    contents.trajectories.push_back(std::move(trajectory));
  }
  return Status();
}

}  // namespace

const RunFormat kTauBenchFormat = {"tau_bench", "tau-bench results", recognise, read};

}  // namespace memdecay
