// Which layers share a page geometry and a window: the layer groups of design decision D1.
//
// A plain model has one group. A model with sliding-window layers has two: group 0 holds the global
// layers, group 1 the windowed ones, so that the pages of the latter can go when the window has
// passed.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/id.h"
#include "core/paged_kv.h"
#include "model/gguf/model_config.h"

namespace memdecay {

struct LayerGroups {
  struct Group {
    KvPageLayout layout;
    int window = 0;  ///< tokens a query sees, its own included; 0 for all
  };
  struct Place {
    LayerGroupId group;
    int layer_in_group = 0;
  };
  std::vector<Group> groups;  ///< by LayerGroupId
  std::vector<Place> layers;  ///< by layer of the model

  /// The group whose layers see every token; none where all have a window.
  std::optional<LayerGroupId> without_window() const {
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (groups[i].window == 0) return LayerGroupId(static_cast<int>(i));
    return std::nullopt;
  }
};

LayerGroups make_layer_groups(const ModelConfig& config, int page_tokens, KvFormat format);

}  // namespace memdecay
