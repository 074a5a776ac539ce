#include "model/gguf/model_metadata.h"

#include <array>
#include <cmath>

namespace memdecay {
namespace {

/// A key that changes the computation unless it has its neutral value (or is absent).
struct ComputationKey {
  std::string_view suffix;
  double neutral;
  std::string_view what;
};

constexpr std::array kComputationKeys = {
    ComputationKey{"expert_count", 0, "a mixture of experts"},
    ComputationKey{"attention.causal", 1, "attention to later tokens"},
    ComputationKey{"attention.clamp_kqv", 0, "clamped attention inputs"},
    ComputationKey{"attention.max_alibi_bias", 0, "ALiBi positions"},
    ComputationKey{"attention.scale", 0, "an attention scale of its own"},
    ComputationKey{"attn_logit_softcapping", 0, "soft-capped attention scores"},
    ComputationKey{"logit_scale", 1, "scaled logits"},
    ComputationKey{"residual_scale", 1, "scaled residuals"},
    ComputationKey{"embedding_scale", 1, "scaled embeddings"},
    ComputationKey{"use_parallel_residual", 0, "parallel residuals"},
    ComputationKey{"rope.scaling.attn_factor", 1, "a RoPE attention factor"},
    ComputationKey{"rope.scaling.yarn_attn_factor", 1, "a YaRN attention factor"},
    ComputationKey{"rope.scaling.yarn_ext_factor", 1, "a YaRN extrapolation factor"},
    ComputationKey{"rope.scaling.yarn_log_multiplier", 0, "a YaRN log multiplier"},
};

std::optional<double> as_number(const GgufValue& value) {
  if (const auto real = value.as<double>(); real.ok()) return *real;
  if (const auto flag = value.as<bool>(); flag.ok()) return *flag ? 1 : 0;
  if (const auto whole = value.as<std::int64_t>(); whole.ok()) return static_cast<double>(*whole);
  return std::nullopt;
}

}  // namespace

Result<int> ModelMetadata::in_range(std::string_view suffix, std::int64_t value, int least,
                                    int most) const {
  if (value < least || value > most)
    return make_status(StatusCode::kCorrupt, "{}: {} is {}, not between {} and {}", file_.name(),
                       key(suffix), value, least, most);
  return static_cast<int>(value);
}

Result<int> ModelMetadata::count(std::string_view suffix, int least, int most) const {
  MEMDECAY_ASSIGN_OR_RETURN(const std::int64_t value, file_.required<std::int64_t>(key(suffix)));
  return in_range(suffix, value, least, most);
}

Result<int> ModelMetadata::count_or(std::string_view suffix, int least, int most,
                                    int otherwise) const {
  if (!file_.find(key(suffix))) return otherwise;
  return count(suffix, least, most);
}

Result<std::optional<int>> ModelMetadata::count_of_layers(std::string_view suffix, int layers,
                                                          int least, int most) const {
  const auto value = file_.find(key(suffix));
  if (!value) return std::optional<int>();
  if (value->type() != GgufValueType::kArray) {
    MEMDECAY_ASSIGN_OR_RETURN(const int same, count(suffix, least, most));
    return std::optional<int>(same);
  }
  MEMDECAY_ASSIGN_OR_RETURN(const auto values, file_.numbers<std::int64_t>(key(suffix)));
  if (values.size() != static_cast<std::size_t>(layers))
    return make_status(StatusCode::kCorrupt, "{}: {} has {} values for {} layers", file_.name(),
                       key(suffix), values.size(), layers);
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] != values[0])
      return make_status(StatusCode::kUnsupported,
                         "{}: {} differs between layers, which this build does not support",
                         file_.name(), key(suffix));
  MEMDECAY_ASSIGN_OR_RETURN(const int same, in_range(suffix, values[0], least, most));
  return std::optional<int>(same);
}

Result<std::optional<double>> ModelMetadata::number(std::string_view suffix, double least,
                                                    double most) const {
  MEMDECAY_ASSIGN_OR_RETURN(const auto value, file_.optional<double>(key(suffix)));
  if (value && !(*value >= least && *value <= most))  // also where it is not a number
    return make_status(StatusCode::kCorrupt, "{}: {} is {}, not between {} and {}", file_.name(),
                       key(suffix), *value, least, most);
  return value;
}

Status ModelMetadata::refuse_unknown_computation() const {
  for (const ComputationKey& known : kComputationKeys) {
    const auto value = file_.find(key(known.suffix));
    if (!value) continue;
    const auto number = as_number(*value);
    // Some writers put 0 where they mean "no such scale".
    const bool is_neutral =
        number && (*number == known.neutral || (*number == 0 && known.suffix.ends_with("_scale")));
    if (!is_neutral)
      return make_status(StatusCode::kUnsupported,
                         "{}: the model uses {} ({} = {}), which this build does not support",
                         file_.name(), known.what, key(known.suffix), value->describe(20));
  }
  return {};
}

}  // namespace memdecay
