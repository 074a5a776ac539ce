#include "eval/calibration/use_recorder.h"

#include <algorithm>

#include "core/check.h"
#include "core/slot_of.h"

namespace memdecay {
namespace {

constexpr Position kSinkTokens = 4;

}  // namespace

void UseRecorder::track(const PageMeta& page) {
  Life& life = slot_of(lives_, page.id.index());
  if (!life.tracked) life.last_use = page.born_step;
  life.tracked = true;
  life.meta = page;
}

bool UseRecorder::counts(TrackedPageId page) const {
  return page.index() < lives_.size() && lives_[page.index()].tracked &&
         lives_[page.index()].meta.position >= kSinkTokens;
}

void UseRecorder::observe(const EvidenceBatch& batch) {
  const bool assistant = batch.phase == QueryPhase::kThink || batch.phase == QueryPhase::kAct;
  if (batch.kind != EvidenceKind::kAttentionMass || !assistant) return;
  double mass = 0;
  std::int64_t tokens = 0;
  for (const PageEvidence& evidence : batch.pages) {
    if (!counts(evidence.page)) continue;
    mass += static_cast<double>(evidence.value);
    tokens += lives_[evidence.page.index()].meta.tokens;
  }
  if (tokens == 0) return;
  const double even = looks_above_ * mass / static_cast<double>(tokens);
  for (const PageEvidence& evidence : batch.pages) {
    if (!counts(evidence.page)) continue;
    Life& life = lives_[evidence.page.index()];
    if (static_cast<double>(evidence.value) > even * life.meta.tokens)
      life.last_use = std::max(life.last_use, step_);
  }
}

void UseRecorder::repack(std::span<const TrackedPageId> before,
                         std::span<const PackedPage> /*after*/) {
  MEMDECAY_CHECK(before.empty());
}

Explanation UseRecorder::explain(TrackedPageId /*page*/) const {
  Explanation answer;
  answer.sentence = "nothing is ever forgotten while uses are recorded";
  return answer;
}

std::vector<UseRecord> UseRecorder::records() const {
  std::vector<UseRecord> records;
  for (const Life& life : lives_) {
    if (!life.tracked || life.meta.position < kSinkTokens) continue;
    records.push_back({life.meta.region, life.meta.born_step, life.last_use, step_});
  }
  return records;
}

}  // namespace memdecay
