#include "engine/page_regions.h"

#include <memory>
#include <optional>

#include "policy/policies/window_policy.h"

namespace memdecay {
namespace {

std::vector<PageRegion> regions_of(const SessionMemory& memory) {
  std::vector<PageRegion> regions;
  for (const SessionMemory::Page& page : memory.pages())
    regions.push_back({page.format, memory.meta(page).region});
  return regions;
}

}  // namespace

std::vector<PageRegion> page_regions(const Engine& engine, const Session& session,
                                     const PromptLabels& labels) {
  if (session.memory() != nullptr) return regions_of(*session.memory());
  const std::optional<LayerGroupId> group = engine.group_without_window();
  if (!group.has_value()) return {};
  SessionMemoryOptions options;
  options.page_tokens = engine.options().page_tokens;
  options.evicts = false;  // it judges nothing, it only tells pages apart
  SessionMemory memory(std::make_unique<WindowPolicy>(ProtectionOptions()), options);
  memory.label(labels);
  memory.sync(session.sequence().view(*group), static_cast<Position>(session.tokens().size()));
  return regions_of(memory);
}

}  // namespace memdecay
