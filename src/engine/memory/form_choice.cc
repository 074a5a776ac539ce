#include "engine/memory/form_choice.h"

#include <utility>

#include "engine/memory/form_report_file.h"

namespace memdecay {

FormChoice::FormChoice(const EngineOptions& options, const Model& model, Transformer& transformer,
                       const LayerGroups& groups, const KvCache& cache)
    : options_(options), model_(model), transformer_(transformer), groups_(groups), cache_(cache) {}

Result<FormReport> FormChoice::report() {
  if (report_.has_value()) return *report_;
  const bool keeps = !options_.measurements_folder.empty();
  std::string fingerprint;
  if (keeps) {
    MEMDECAY_ASSIGN_OR_RETURN(fingerprint, file_fingerprint(options_.model_path));
    report_ = read_form_report(options_.measurements_folder, fingerprint);
    if (report_.has_value()) return *report_;
  }
  MEMDECAY_ASSIGN_OR_RETURN(
      report_, measure_forms(model_, transformer_, groups_, form_check_tokens(model_)));
  if (!keeps) return *report_;
  const Status kept = write_form_report(options_.measurements_folder, fingerprint, *report_);
  if (!kept.ok() && options_.on_note)
    options_.on_note("what was measured about the model is not kept: " + kept.message());
  return *report_;
}

Status FormChoice::offer(KvForms wanted, LayerGroupId group, SessionMemoryOptions& memory) {
  const KvPageLayout& layout = groups_.groups[group.index()].layout;
  const bool climbs = wanted == KvForms::kAuto && memory.evicts;
  FormReport report;
  if (climbs || wanted == KvForms::kInt4) {
    MEMDECAY_ASSIGN_OR_RETURN(report, this->report());
  }
  for (const KvFormat format : cache_.config().forms) {
    const std::size_t form = form_index(form_of(format));
    memory.forms[form] = {PagePool::stride_bytes_for(layout.in(format)),
                          report.rounding_error[form]};
  }
  if (report.keys_survive_int4()) return Status();
  if (climbs) memory.forms[form_index(PageForm::kInt4)] = {};
  tell_of_int4(report, climbs);
  return Status();
}

void FormChoice::tell_of_int4(const FormReport& report, bool climbs) {
  if (!options_.on_note || std::exchange(told_of_int4_, true)) return;
  options_.on_note(fmt::format(
      "this model's keys do not survive int4 (its predictions then diverge by {:.2g} nats a "
      "token, {:.2g} with int8 keys): {}",
      report.divergence[form_index(PageForm::kInt4)],
      report.divergence[form_index(PageForm::kK8V4)],
      climbs ? "pages become k8v4 at least" : "--kv-format k8v4 would be the better choice"));
}

}  // namespace memdecay
