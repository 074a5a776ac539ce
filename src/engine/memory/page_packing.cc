#include "engine/memory/page_packing.h"

#include <algorithm>

namespace memdecay {

std::optional<PackingChoice> choose_packing(std::span<const PackablePage> pages,
                                            std::int32_t page_tokens, std::size_t most_pages,
                                            Kinship least) {
  std::optional<PackingChoice> best;
  std::size_t most = most_pages;
  for (std::size_t first = 0; first < pages.size(); ++first) {
    if (!pages[first].packable || pages[first].filled >= page_tokens) continue;
    std::int64_t tokens = pages[first].filled;
    const std::size_t end = std::min(pages.size(), first + most);
    for (std::size_t i = first + 1; i < end; ++i) {
      if (!pages[i].packable || pages[i].kinship < least) break;
      tokens += pages[i].filled;
      const std::size_t count = i + 1 - first;
      if (tokens > static_cast<std::int64_t>(count - 1) * page_tokens) continue;
      best = {first, count};
      most = count - 1;  // only fewer are better
      break;
    }
  }
  return best;
}

}  // namespace memdecay
