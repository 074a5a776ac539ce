#include "eval/cells/memory_cell.h"

#include <algorithm>
#include <charconv>

#include "core/units.h"
#include "eval/cells/policy_version.h"
#include "policy/policies/policy_spec.h"

namespace memdecay {
namespace {

constexpr std::string_view kPrefixSuffix = "+prefix";
constexpr std::string_view kOracle = "oracle";
constexpr std::string_view kAllPolicies = "all";

bool protects_prefix(std::string_view policy) {
  return policy.ends_with(kPrefixSuffix);
}

std::string plain_name(std::string_view policy) {
  if (protects_prefix(policy)) policy.remove_suffix(kPrefixSuffix.size());
  return std::string(policy);
}

/// The word "all" as the policies that it stands for.
std::vector<std::string> named_policies(const std::vector<std::string>& words) {
  std::vector<std::string> policies;
  for (const std::string& word : words) {
    if (word != kAllPolicies) {
      policies.push_back(word);
      continue;
    }
    for (const std::string_view name : policy_names()) {
      policies.emplace_back(name);
      if (!name.starts_with("memdecay"))
        policies.push_back(fmt::format("{}{}", name, kPrefixSuffix));
    }
  }
  return policies;
}

/// Adds a cell that is not among them.
void add_cell(MemoryCell cell, std::vector<MemoryCell>& cells) {
  const bool known = std::any_of(cells.begin(), cells.end(), [&](const MemoryCell& other) {
    return other.policy == cell.policy && other.kv_format == cell.kv_format &&
           other.budget.text == cell.budget.text;
  });
  if (!known) cells.push_back(std::move(cell));
}

}  // namespace

Result<CellBudget> parse_cell_budget(std::string_view text) {
  CellBudget budget;
  budget.text = text;
  if (!text.ends_with('%')) {
    MEMDECAY_ASSIGN_OR_RETURN(budget.bytes, parse_bytes(std::string(text)));
    return budget;
  }
  double percent = 0;
  const char* end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data(), end, percent);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(percent > 0 && percent <= 100)) {
    return make_status(StatusCode::kInvalidArgument,
                       "the budget \"{}\" is no share between 0% and 100%", text);
  }
  budget.share = percent / 100;
  return budget;
}

std::string MemoryCell::spec() const {
  return plain_name(policy);
}

bool MemoryCell::is_oracle() const {
  return spec() == kOracle;
}

Result<SessionOptions> MemoryCell::options(std::uint64_t protected_bytes,
                                           std::uint64_t total_bytes) const {
  SessionOptions options;
  options.policy = spec();
  options.protect_prefix = protects_prefix(policy);
  MEMDECAY_ASSIGN_OR_RETURN(options.kv_forms, kv_forms_named(kv_format));
  if (budget.text.empty()) return options;
  const auto free_bytes = static_cast<double>(total_bytes - protected_bytes);
  options.budget_bytes =
      budget.share > 0 ? protected_bytes + static_cast<std::uint64_t>(free_bytes * budget.share)
                       : budget.bytes;
  // The budget itself is what is measured, so it is used to the last page.
  options.watermarks = {0.99, 0.97, 0.96};
  return options;
}

Result<std::vector<MemoryCell>> make_cells(const std::vector<std::string>& policies,
                                           const std::vector<std::string>& kv_formats,
                                           const std::vector<std::string>& budgets,
                                           const PolicyConfig& config) {
  std::vector<CellBudget> parsed;
  for (const std::string& budget : budgets) {
    MEMDECAY_ASSIGN_OR_RETURN(CellBudget one, parse_cell_budget(budget));
    parsed.push_back(std::move(one));
  }
  std::vector<MemoryCell> cells;
  for (const std::string& policy : named_policies(policies)) {
    const std::string name = plain_name(policy);
    if (name != "none" && name != kOracle)
      MEMDECAY_RETURN_IF_ERROR(make_policy_by_spec(name).status());
    MEMDECAY_ASSIGN_OR_RETURN(const std::string version, policy_version(name, config));
    for (const std::string& format : kv_formats) {
      MEMDECAY_RETURN_IF_ERROR(kv_forms_named(format).status());
      if (name == "none") {
        add_cell({policy, format, {}, version}, cells);
        continue;
      }
      for (const CellBudget& budget : parsed) add_cell({policy, format, budget, version}, cells);
    }
  }
  return cells;
}

}  // namespace memdecay
