// Which forms Engine offers a session's pages, by what they cost its model.
#include <utility>

#include "engine/engine.h"
#include "engine/memory/form_report_file.h"

namespace memdecay {

Result<FormReport> Engine::form_report() {
  if (form_report_.has_value()) return *form_report_;
  const bool keeps = !options_.measurements_folder.empty();
  std::string fingerprint;
  if (keeps) {
    MEMDECAY_ASSIGN_OR_RETURN(fingerprint, file_fingerprint(options_.model_path));
    form_report_ = read_form_report(options_.measurements_folder, fingerprint);
    if (form_report_.has_value()) return *form_report_;
  }
  MEMDECAY_ASSIGN_OR_RETURN(
      form_report_, measure_forms(*model_, *transformer_, groups_, form_check_tokens(*model_)));
  if (!keeps) return *form_report_;
  const Status kept = write_form_report(options_.measurements_folder, fingerprint, *form_report_);
  if (!kept.ok() && options_.on_note)
    options_.on_note("what was measured about the model is not kept: " + kept.message());
  return *form_report_;
}

/// Fills in what a page costs in each form that it may take. The ladder must know what it loses in
/// them, and whoever takes int4 whether the keys survive it.
Status Engine::choose_forms(KvForms wanted, SessionMemoryOptions& memory) {
  const KvPageLayout& layout = groups_.groups[evictable_->index()].layout;
  const bool climbs = wanted == KvForms::kAuto && memory.evicts;
  FormReport report;
  if (climbs || wanted == KvForms::kInt4) {
    MEMDECAY_ASSIGN_OR_RETURN(report, form_report());
  }
  for (const KvFormat format : cache_->config().forms) {
    const std::size_t form = form_index(form_of(format));
    memory.forms[form] = {PagePool::stride_bytes_for(layout.in(format)),
                          report.rounding_error[form]};
  }
  if (report.keys_survive_int4()) return Status();
  const double divergence = report.divergence[form_index(PageForm::kInt4)];
  if (climbs) memory.forms[form_index(PageForm::kInt4)] = {};
  if (!options_.on_note || std::exchange(told_of_int4_, true)) return Status();
  options_.on_note(fmt::format(
      "this model's keys do not survive int4 (its predictions then diverge by {:.2g} nats a "
      "token, {:.2g} with int8 keys): {}",
      divergence, report.divergence[form_index(PageForm::kK8V4)],
      climbs ? "pages become k8v4 at least" : "--kv-format k8v4 would be the better choice"));
  return Status();
}

}  // namespace memdecay
