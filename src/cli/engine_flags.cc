#include "cli/engine_flags.h"

#include "cli/flag_checks.h"
#include "cli/standard_error.h"
#include "cli/usage_message.h"
#include "core/units.h"
#include "engine/model_catalogue.h"
#include "sys/user_folders.h"

namespace memdecay {

void EngineFlags::add_model_to(CLI::App& command, bool positional) {
  if (positional) {
    add_model_argument(command, model_);
  } else {
    model_ = model_catalogue().front().name;
    command
        .add_option("-m,--model", model_,
                    fmt::format("a name of the catalogue ({}), hf:OWNER/REPO/FILE, or the path of "
                                "a GGUF file",
                                catalogue_names()))
        ->type_name("MODEL")
        ->capture_default_str();
  }
  command.add_option("-t,--threads", threads_, "threads; 0: the cores this process may use")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  command
      .add_option("-c,--ctx-size", context_,
                  "longest sequence in tokens; 0: what the model was trained for")
      ->check(token_count())
      ->capture_default_str();
}

void EngineFlags::add_policy_config_to(CLI::App& command) {
  command
      .add_option("--policy-config", policy_config_,
                  "how fast each region is forgotten: a file as `calibrate decay` writes it")
      ->type_name("FILE");
}

void EngineFlags::add_to(CLI::App& command, bool positional) {
  add_model_to(command, positional);
  command
      .add_option(
          "--kv-budget", kv_budget_,
          "most bytes for keys and values, e.g. 32MiB; strict; not set: as much as is needed")
      ->type_name("SIZE")
      ->check(byte_size());
  command
      .add_option(
          "--policy", policy_,
          "who forgets when the budget is tight: memdecay, memdecay-classic, window, sinks, "
          "uniform, recompute, h2o, tova, keydiff, lru, random; none: nobody; or "
          "NAME:SETTING=VALUE")
      ->type_name("NAME")
      ->capture_default_str();
  add_policy_config_to(command);
  command.add_flag("--protect-prefix", protect_prefix_,
                   "never evict the text before the first user turn, whatever the policy");
  command
      .add_option("--kv-format", kv_format_,
                  "form of written pages: fp16, int8, k8v4, int4, or auto: the budget decides page "
                  "by page")
      ->check(CLI::IsMember({"auto", "fp16", "int8", "k8v4", "int4"}))
      ->capture_default_str();
  command.add_flag("--virtual-positions,!--no-virtual-positions", virtual_positions_,
                   "a session under a budget may outgrow the context: what was evicted no longer "
                   "counts (on)");
  command.add_flag("--share-prefixes,!--no-share-prefixes", share_prefixes_,
                   "what sessions begin with alike is computed and held once, and stays until its "
                   "room is wanted (on)");
  command.add_option("-b,--batch-size", batch_tokens_, "most tokens in one forward pass")
      ->check(whole_number(1, 8192))
      ->capture_default_str();
  command.add_option("--page-tokens", page_tokens_, "tokens per page: 16, 32 or 64")
      ->check(CLI::IsMember({16, 32, 64}).description(""))
      ->capture_default_str();
  command
      .add_option("--precision", precision_,
                  "fast: the file's weights, fp16 keys and values; exact: fp32 throughout, slow")
      ->check(CLI::IsMember({"fast", "exact"}))
      ->capture_default_str();
}

void add_stable_prefix_flag(CLI::App& command, std::string& rule) {
  command
      .add_option(
          "--stable-prefix", rule,
          "times, dates and ids in system messages: normalise writes [time] and [id]; move puts "
          "their lines behind the message, or behind the tools")
      ->check(CLI::IsMember({"off", "normalise", "move"}))
      ->capture_default_str();
}

Result<EngineOptions> EngineFlags::options() const {
  EngineOptions options;
  MEMDECAY_ASSIGN_OR_RETURN(options.model_path, resolve_model(model_));
  options.threads = threads_;
  options.context_tokens = context_;
  options.page_tokens = page_tokens_;
  options.batch_tokens = batch_tokens_;
  options.policy = policy_;
  if (!policy_config_.empty()) {
    MEMDECAY_ASSIGN_OR_RETURN(options.policy_config, read_policy_config(policy_config_));
  }
  if (const auto folder = cache_folder(); folder.ok())
    options.measurements_folder = (*folder / "models").string();
  options.on_note = print_note;
  options.protect_prefix = protect_prefix_;
  options.virtual_positions = virtual_positions_;
  options.share_prefixes = share_prefixes_;
  options.miss_audience = PrefixDifference::Audience::kOperator;  // who runs the command
  MEMDECAY_ASSIGN_OR_RETURN(options.kv_forms, kv_forms_named(kv_format_));
  options.precision = precision_ == "exact" ? Precision::kExact : Precision::kFast;
  if (!kv_budget_.empty()) {
    MEMDECAY_ASSIGN_OR_RETURN(options.kv_budget_bytes, parse_bytes(kv_budget_));
  }
  return options;
}

Result<std::unique_ptr<Engine>> EngineFlags::make_engine() const {
  MEMDECAY_ASSIGN_OR_RETURN(const EngineOptions options, this->options());
  return Engine::create(options);
}

}  // namespace memdecay
