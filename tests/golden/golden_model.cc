#include "golden_model.h"

#include <algorithm>
#include <numeric>

namespace memdecay {

Result<std::unique_ptr<GoldenModel>> GoldenModel::open(const std::string& path,
                                                       const Options& options) {
  MEMDECAY_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(path));
  return std::unique_ptr<GoldenModel>(new GoldenModel(std::move(file), options));
}

GoldenModel::GoldenModel(GgufFile file, const Options& options)
    : model_(std::move(file), options.precision, options.page_tokens, options.threads,
             {kPass, kLogitRows}, *options.kernels) {}

void GoldenModel::lay_out_pages(int tokens) {
  slabs_.clear();
  pages_.clear();
  for (const LayerGroups::Group& group : model_.groups.groups) {
    const int page_tokens = group.layout.page_tokens;
    const int count = (tokens + page_tokens - 1) / page_tokens;
    const std::size_t page_bytes = group.layout.page_bytes();
    auto& slab = slabs_.emplace_back(page_bytes * static_cast<std::size_t>(count));
    auto& pages = pages_.emplace_back();
    for (int i = 0; i < count; ++i) {
      pages.push_back({slab.data() + page_bytes * static_cast<std::size_t>(i), i * page_tokens, 0,
                       group.layout.format});
    }
  }
}

Result<GoldenSummary> GoldenModel::judge(const GoldenFile& golden, int chunks) {
  if (golden.n_vocab() != model_.config.vocab_size) {
    return make_status(StatusCode::kInvalidArgument, "the golden file has {} ids and the model {}",
                       golden.n_vocab(), model_.config.vocab_size);
  }
  GoldenSummary summary;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    lay_out_pages(golden.n_ctx());
    MEMDECAY_RETURN_IF_ERROR(judge_chunk(golden, chunk, summary));
  }
  return summary;
}

Status GoldenModel::judge_chunk(const GoldenFile& golden, int chunk, GoldenSummary& summary) {
  const auto tokens = golden.chunk_tokens(chunk);
  for (int begin = 0; begin < golden.n_ctx(); begin += kPass) {
    const int rows = std::min(kPass, golden.n_ctx() - begin);
    std::vector<PagedKvView> views;
    for (std::size_t g = 0; g < pages_.size(); ++g) {
      const int page_tokens = model_.groups.groups[g].layout.page_tokens;
      const int end = begin + rows;
      const int count = (end + page_tokens - 1) / page_tokens;
      for (int i = 0; i < count; ++i) {
        pages_[g][static_cast<std::size_t>(i)].filled =
            std::min(page_tokens, end - i * page_tokens);
      }
      const auto used = std::span(pages_[g]).first(static_cast<std::size_t>(count));
      views.push_back({&model_.groups.groups[g].layout, used, 0});
    }
    SequenceSlice slice;
    slice.rows = rows;
    slice.first_position = begin;
    slice.views = views;
    const auto part =
        tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows));
    MEMDECAY_RETURN_IF_ERROR(model_.transformer->forward({part, std::span(&slice, 1)}));

    judge_rows(golden, chunk, begin, begin + rows, summary);
  }
  return {};
}

void GoldenModel::judge_rows(const GoldenFile& golden, int chunk, int begin, int end,
                             GoldenSummary& summary) {
  const int last = std::min(golden.n_ctx() - 1, end);
  for (int at = std::max(golden.first_scored(), begin); at < last; at += kLogitRows) {
    std::vector<int> rows(static_cast<std::size_t>(std::min(kLogitRows, last - at)));
    std::iota(rows.begin(), rows.end(), at - begin);
    const auto logits = model_.transformer->logits(rows);
    const std::size_t width = logits.size() / rows.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const int offset = at + static_cast<int>(i) - golden.first_scored();
      summary.add(golden.judge(chunk, offset, logits.subspan(i * width, width)));
    }
  }
}

}  // namespace memdecay
