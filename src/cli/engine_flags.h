// The flags that every command with an engine shares: model, threads, memory, precision.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "core/status.h"
#include "engine/engine.h"

namespace memdecay {

class EngineFlags {
 public:
  /// Adds -m (with `positional`, also MODEL in its place, and no default), -t, -c, -b, --kv-budget,
  /// --policy, --policy-config, --protect-prefix, --kv-format, --virtual-positions,
  /// --share-prefixes, --page-tokens and --precision to a command.
  void add_to(CLI::App& command, bool positional = false);

  /// Only what names the model and how to run it: -m (or MODEL), -t and -c.
  void add_model_to(CLI::App& command, bool positional = false);

  /// Only --policy-config.
  void add_policy_config_to(CLI::App& command);

  const std::string& model() const { return model_; }
  /// Another model than the one that -m names by default.
  void use_model(std::string model) { model_ = std::move(model); }
  bool has_budget() const { return !kv_budget_.empty(); }
  /// Options with the model resolved to a path (fetched when it is a name that is not here yet).
  Result<EngineOptions> options() const;
  /// The engine that the flags describe.
  Result<std::unique_ptr<Engine>> make_engine() const;

 private:
  std::string model_;
  int threads_ = 0;
  int context_ = 0;
  int page_tokens_ = 32;
  int batch_tokens_ = EngineOptions().batch_tokens;
  std::string kv_budget_;
  std::string policy_ = EngineOptions().policy;
  std::string policy_config_;
  bool protect_prefix_ = false;
  bool share_prefixes_ = EngineOptions().share_prefixes;
  bool virtual_positions_ = EngineOptions().virtual_positions;
  std::string kv_format_ = "auto";
  std::string precision_ = "fast";
};

/// Adds --stable-prefix, for commands with system messages; stable_prefix_named() reads it.
void add_stable_prefix_flag(CLI::App& command, std::string& rule);

}  // namespace memdecay
