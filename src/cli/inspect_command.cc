#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/standard_output.h"
#include "cli/usage_message.h"
#include "core/units.h"
#include "engine/model_catalogue.h"
#include "engine/model_inspection.h"

namespace memdecay {
namespace {

struct InspectFlags {
  std::string model;
  bool json = false;
};

/// Two digits that count: more would promise what nobody measured.
std::int64_t rounded_down(std::int64_t count) {
  std::int64_t unit = 1;
  while (count / unit >= 100) unit *= 10;
  return count / unit * unit;
}

/// 1,234,567
std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, ",");
  return digits;
}

void print_inspection(const ModelInspection& model) {
  std::printf("%s\n%s, GGUF v%u\n\nmetadata\n", model.path.c_str(),
              format_bytes(model.file_bytes).c_str(), model.gguf_version);
  for (const auto& entry : model.metadata)
    std::printf("  %-42s %s\n", entry.key.c_str(), entry.text.c_str());
  std::printf("\ntensors\n");
  for (const auto& [type, total] : model.tensors) {
    std::printf("  %-8s %5d  %s\n", type.c_str(), total.count, format_bytes(total.bytes).c_str());
  }
  std::printf("\nmemory\n  keys and values        %s per token (fp16)\n",
              format_bytes(model.kv_bytes_per_token).c_str());
  if (model.sliding_window_bytes > 0) {
    std::printf("  sliding-window layers  %s at most\n",
                format_bytes(model.sliding_window_bytes).c_str());
  }
  std::printf(
      "  this machine           %s: about %s tokens fit beside the weights (trained for %s)\n",
      format_bytes(model.machine_memory_bytes).c_str(),
      grouped(rounded_down(model.tokens_that_fit)).c_str(), grouped(model.context_length).c_str());
}

nlohmann::ordered_json inspection_json(const ModelInspection& model) {
  nlohmann::ordered_json json;
  json["path"] = model.path;
  json["file_bytes"] = model.file_bytes;
  json["gguf_version"] = model.gguf_version;
  json["architecture"] = model.architecture;
  json["name"] = model.name;
  json["layers"] = model.layers;
  json["embedding_length"] = model.embedding_length;
  json["heads"] = model.heads;
  json["kv_heads"] = model.kv_heads;
  json["head_dim"] = model.head_dim;
  json["vocab_size"] = model.vocab_size;
  json["context_length"] = model.context_length;
  json["sliding_window"] = model.sliding_window;
  json["kv_bytes_per_token"] = model.kv_bytes_per_token;
  json["sliding_window_bytes"] = model.sliding_window_bytes;
  json["machine_memory_bytes"] = model.machine_memory_bytes;
  json["tokens_that_fit"] = model.tokens_that_fit;
  for (const auto& [type, total] : model.tensors) {
    json["tensors"][type] = {{"count", total.count}, {"bytes", total.bytes}};
  }
  for (const auto& entry : model.metadata) json["metadata"][entry.key] = entry.value;
  return json;
}

Status inspect(const InspectFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string path, resolve_model(flags.model));
  MEMDECAY_ASSIGN_OR_RETURN(const ModelInspection model, inspect_model(path));
  flags.json ? print_json(inspection_json(model), 2) : print_inspection(model);
  return Status();
}

}  // namespace

void add_inspect_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = program.add_subcommand(
      "inspect", "what a model file holds, and what of it fits in this machine");
  add_model_argument(*command, flags->model);
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "Reads the header only, so it is quick for any size.\n\n"
      "Examples:\n"
      "  memdecay inspect qwen-0.5b\n"
      "  memdecay inspect ./model.gguf --json");
  command->callback([flags, &status] {
    require_model_argument(flags->model);
    status = report(inspect(*flags));
  });
}

}  // namespace memdecay
