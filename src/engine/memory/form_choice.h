// FormChoice: which forms an engine offers the pages of its sessions, by what they cost its model.
//
// The model is measured (form_check.h) when that is first asked for, or what was measured earlier
// is read (form_report_file.h). A model whose keys do not survive int4 is said so once, to
// EngineOptions::on_note. One thread, the engine's.
#pragma once

#include <optional>

#include "engine/engine_options.h"
#include "engine/memory/form_check.h"
#include "engine/memory/session_memory.h"
#include "kv/kv_cache.h"

namespace memdecay {

class FormChoice {
 public:
  /// All references outlive this object.
  FormChoice(const EngineOptions& options, const Model& model, Transformer& transformer,
             const LayerGroups& groups, const KvCache& cache);

  /// Fills in what pages of the group cost in each form that they may take, and what they lose
  /// there. The ladder must know what it loses, and whoever takes int4 whether the keys survive it:
  /// then this may measure. Fails where that does.
  Status offer(KvForms wanted, LayerGroupId group, SessionMemoryOptions& memory);

 private:
  Result<FormReport> report();
  void tell_of_int4(const FormReport& report, bool climbs);

  const EngineOptions& options_;
  const Model& model_;
  Transformer& transformer_;
  const LayerGroups& groups_;
  const KvCache& cache_;
  std::optional<FormReport> report_;
  bool told_of_int4_ = false;
};

}  // namespace memdecay
