#include "model/transformer/layer_groups.h"

namespace memdecay {

LayerGroups make_layer_groups(const ModelConfig& config, int page_tokens, KvFormat format) {
  LayerGroups result;
  // Number of the group for global ([0]) and windowed ([1]) layers; -1 until a layer of that kind
  // turns up.
  int group_of_kind[2] = {-1, -1};
  bool has_global = false;
  for (int layer = 0; layer < config.layers; ++layer) has_global |= !config.is_sliding(layer);
  const auto add_group = [&](int window) {
    KvPageLayout layout{0, config.kv_heads, config.head_dim, page_tokens, format};
    result.groups.push_back({layout, window});
    return static_cast<int>(result.groups.size()) - 1;
  };
  if (has_global) group_of_kind[0] = add_group(0);
  for (int layer = 0; layer < config.layers; ++layer) {
    int& number = group_of_kind[config.is_sliding(layer) ? 1 : 0];
    if (number < 0) number = add_group(config.sliding_window);
    LayerGroups::Group& group = result.groups[static_cast<std::size_t>(number)];
    result.layers.push_back({LayerGroupId(number), group.layout.layers});
    ++group.layout.layers;
  }
  return result;
}

}  // namespace memdecay
