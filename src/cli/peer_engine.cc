#include "cli/peer_engine.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "sys/subprocess.h"

namespace memdecay {

Result<double> PeerEngine::repeat(const SpeedCase& speed_case, int threads) const {
  const std::vector<std::string> command = {program_,
                                            "-m",
                                            model_path_,
                                            "-t",
                                            std::to_string(threads),
                                            "-p",
                                            std::to_string(speed_case.n_prompt),
                                            "-n",
                                            std::to_string(speed_case.n_gen),
                                            "-d",
                                            std::to_string(speed_case.n_depth),
                                            "-fa",
                                            "on",
                                            "-r",
                                            "1",
                                            "-o",
                                            "json"};
  MEMDECAY_ASSIGN_OR_RETURN(const CommandResult result, run_command(command));
  if (result.exit_status != 0) {
    return make_status(StatusCode::kIoError, "{} ended with status {}", program_,
                       result.exit_status);
  }
  const auto rows = nlohmann::json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  if (!rows.is_array() || rows.size() != 1 || !rows[0].is_object() || !rows[0].contains("avg_ts") ||
      !rows[0]["avg_ts"].is_number() || rows[0]["avg_ts"].get<double>() <= 0) {
    return make_status(StatusCode::kCorrupt, "{} printed no llama-bench row", program_);
  }
  return rows[0]["avg_ts"].get<double>();
}

}  // namespace memdecay
