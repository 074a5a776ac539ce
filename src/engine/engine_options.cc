#include "engine/engine_options.h"

#include "core/value_named.h"
#include "policy/policies/policy_spec.h"

namespace memdecay {
namespace {

Status check_range(const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return Status();
  return make_status(StatusCode::kInvalidArgument, "{} is {}, but must be between {} and {}", field,
                     value, low, high);
}

}  // namespace

Result<KvForms> kv_forms_named(std::string_view name) {
  constexpr NamedValues<KvForms, 5> kNames = {{{"auto", KvForms::kAuto},
                                               {"fp16", KvForms::kF16},
                                               {"int8", KvForms::kInt8},
                                               {"k8v4", KvForms::kK8V4},
                                               {"int4", KvForms::kInt4}}};
  return value_named("KV format", name, kNames);
}

Status EngineOptions::validate() const {
  if (model_path.empty()) return Status(StatusCode::kInvalidArgument, "no model is named");
  MEMDECAY_RETURN_IF_ERROR(check_range("threads", threads, 0, 1024));
  MEMDECAY_RETURN_IF_ERROR(check_range("batch_tokens", batch_tokens, 1, 8192));
  MEMDECAY_RETURN_IF_ERROR(check_range("chunk_tokens", chunk_tokens, 1, 8192));
  MEMDECAY_RETURN_IF_ERROR(check_range("context_tokens", context_tokens, 0, 1 << 24));
  if (page_tokens != 16 && page_tokens != 32 && page_tokens != 64) {
    return make_status(StatusCode::kInvalidArgument, "page_tokens is {}, but must be 16, 32 or 64",
                       page_tokens);
  }
  if (policy != "none") MEMDECAY_RETURN_IF_ERROR(make_policy_by_spec(policy).status());
  if (kv_budget_bytes == 0)
    return Status(StatusCode::kInvalidArgument, "the KV budget must be above 0 bytes");
  return Status();
}

}  // namespace memdecay
