#include "eval/calibration/classifier_study.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/text_hash.h"
#include "engine/memory/token_embeddings.h"
#include "engine/memory/token_regions.h"
#include "eval/runs/label_noise.h"
#include "eval/runs/labelled_episode.h"

namespace memdecay {
namespace {

enum class Share : std::uint8_t { kTraining, kHeldOut, kTest, kUnused };

/// The share of every task, by its name and the seed only.
Result<std::map<std::string, Share>> divide_tasks(std::span<const Trajectory> runs,
                                                  const StudyOptions& options) {
  std::map<std::string, std::set<std::string>> tasks_of;
  for (const Trajectory& run : runs) tasks_of[run.data_set].insert(run.task);
  const bool leaves_out = !options.leave_out.empty();
  if (leaves_out && tasks_of.count(options.leave_out) == 0) {
    std::string known;
    for (const auto& [name, tasks] : tasks_of) known += (known.empty() ? "" : ", ") + name;
    return make_status(StatusCode::kInvalidArgument, "no run is of the data set {}; there are {}",
                       options.leave_out, known);
  }
  std::map<std::string, Share> shares;
  for (const auto& [name, tasks] : tasks_of) {
    std::vector<std::pair<std::uint64_t, std::string>> order;
    for (const std::string& task : tasks) order.emplace_back(text_hash(task, options.seed), task);
    std::sort(order.begin(), order.end());
    const bool can_divide = order.size() >= 3;
    const std::size_t test = can_divide ? std::max<std::size_t>(1, order.size() / 5) : 0;
    const std::size_t held_out = can_divide ? std::max<std::size_t>(1, order.size() / 10) : 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Share share = i < test              ? Share::kTest
                    : i < test + held_out ? Share::kHeldOut
                                          : Share::kTraining;
      if (leaves_out && name == options.leave_out) share = Share::kTest;
      if (leaves_out && name != options.leave_out && share == Share::kTest) share = Share::kUnused;
      shares[order[i].second] = share;
    }
  }
  return shares;
}

struct Divided {
  std::vector<LabelledEpisode> training, held_out, test;
};

Result<Divided> label_runs(const Model& model, std::span<const Trajectory> runs,
                           const StudyOptions& options) {
  MEMDECAY_ASSIGN_OR_RETURN(const auto shares, divide_tasks(runs, options));
  Divided divided;
  for (const Trajectory& run : runs) {
    const Share share = shares.at(run.task);
    if (share == Share::kUnused) continue;
    std::vector<LabelledEpisode>& list = share == Share::kTraining  ? divided.training
                                         : share == Share::kHeldOut ? divided.held_out
                                                                    : divided.test;
    for (const TranscriptStyle style : kTranscriptStyles) {
      Result<LabelledEpisode> episode = label_episode(model, run, style, options.max_text_bytes);
      if (!episode.ok()) return episode.status().with_context(run.source);
      list.push_back(std::move(episode).value());
    }
  }
  if (divided.training.empty() || divided.held_out.empty() || divided.test.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "too few tasks: runs are divided by task, and at least three are needed");
  }
  return divided;
}

std::vector<LabelledText> texts_of(const std::vector<LabelledEpisode>& episodes, double noise,
                                   std::uint64_t seed, DistinctTokens& distinct) {
  LabelNoise label_noise(noise, seed);
  std::vector<LabelledText> texts;
  for (const LabelledEpisode& episode : episodes) {
    std::vector<RegionSpan> spans = episode.spans;
    label_noise.relabel(spans);
    texts.push_back({distinct.rows_of(episode.tokens), episode.places, regions_of(spans)});
  }
  return texts;
}

std::size_t tokens_in(const std::vector<LabelledEpisode>& episodes) {
  std::size_t tokens = 0;
  for (const LabelledEpisode& episode : episodes) tokens += episode.tokens.size();
  return tokens;
}

std::size_t tasks_in(const std::vector<LabelledEpisode>& episodes) {
  std::set<std::string> tasks;
  for (const LabelledEpisode& episode : episodes) tasks.insert(episode.task);
  return tasks.size();
}

Region commonest(const std::vector<LabelledText>& texts) {
  std::array<std::size_t, kRegionCount> counts{};
  for (const LabelledText& text : texts) {
    for (const Region label : text.labels) ++counts[region_index(label)];
  }
  return kRegions[static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) -
                                           counts.begin())];
}

/// Rows for all, for each data set and for each style, in the order of their names.
class RowTable {
 public:
  void add(const std::string& method, const LabelledEpisode& episode, std::span<const Region> truth,
           std::span<const Region> named) {
    const std::string style = transcript_style_name(episode.style);
    row(method, "all", "all").add(truth, named);
    row(method, episode.data_set, "all").add(truth, named);
    row(method, "all", style).add(truth, named);
  }
  std::vector<StudyRow> take() { return std::move(rows_); }

 private:
  RegionConfusion& row(const std::string& method, const std::string& data_set,
                       const std::string& style) {
    for (StudyRow& row : rows_) {
      if (row.method == method && row.data_set == data_set && row.style == style)
        return row.confusion;
    }
    rows_.push_back({method, data_set, style, {}});
    return rows_.back().confusion;
  }
  std::vector<StudyRow> rows_;
};

std::vector<StudyRow> measure(const Model& model, const RegionClassifier& classifier,
                              const std::vector<LabelledEpisode>& test, Region usual,
                              std::uint64_t seed) {
  RowTable table;
  for (const LabelledEpisode& episode : test) {
    const std::vector<Region> truth = regions_of(episode.spans);
    table.add("classifier", episode, truth, classify_tokens(model, classifier, episode.tokens));
    table.add("rules without structure", episode, truth, episode.without);
    table.add("commonest region", episode, truth, std::vector<Region>(truth.size(), usual));
  }
  for (const int percent : {0, 10, 30}) {
    LabelNoise noise(percent / 100.0, seed + 2);
    for (const LabelledEpisode& episode : test) {
      std::vector<RegionSpan> spans = episode.spans;
      noise.relabel(spans);
      table.add(fmt::format("rules with structure, {} % noise", percent), episode,
                regions_of(episode.spans), regions_of(spans));
    }
  }
  return table.take();
}

}  // namespace

Result<ClassifierStudy> study_classifier(const Model& model, std::span<const Trajectory> runs,
                                         const StudyOptions& options,
                                         const std::function<void(const EpochReport&)>& on_epoch) {
  MEMDECAY_ASSIGN_OR_RETURN(const Divided divided, label_runs(model, runs, options));
  DistinctTokens distinct(model.config().vocab_size);
  const auto training = texts_of(divided.training, options.noise, options.seed, distinct);
  const auto held_out = texts_of(divided.held_out, options.noise, options.seed + 1, distinct);
  const std::vector<float> embeddings = read_embeddings(model, distinct.tokens());
  TrainingOptions settings = options.training;
  settings.shape.embedding_width = model.config().embedding_length;
  settings.seed = options.seed;
  MEMDECAY_ASSIGN_OR_RETURN(TrainedClassifier trained,
                            train_classifier({embeddings, training, held_out}, settings, on_epoch));
  const ClassifierFile exact =
      classifier_file_for(model, model.config().name, std::move(trained.classifier));
  MEMDECAY_ASSIGN_OR_RETURN(ClassifierFile file, parse_classifier(serialize_classifier(exact)));
  ClassifierStudy study{std::move(file)};
  study.epochs = std::move(trained.epochs);
  study.best_epoch = trained.best_epoch;
  study.training_tokens = tokens_in(divided.training);
  study.held_out_tokens = tokens_in(divided.held_out);
  study.test_tokens = tokens_in(divided.test);
  study.training_tasks = tasks_in(divided.training);
  study.held_out_tasks = tasks_in(divided.held_out);
  study.test_tasks = tasks_in(divided.test);
  study.rows =
      measure(model, study.file.classifier, divided.test, commonest(training), options.seed);
  return study;
}

nlohmann::ordered_json study_json(const ClassifierStudy& study) {
  nlohmann::ordered_json json;
  json["training"] = {
      {"training_tasks", study.training_tasks}, {"training_tokens", study.training_tokens},
      {"held_out_tasks", study.held_out_tasks}, {"held_out_tokens", study.held_out_tokens},
      {"test_tasks", study.test_tasks},         {"test_tokens", study.test_tokens},
      {"best_epoch", study.best_epoch}};
  for (const EpochReport& epoch : study.epochs) {
    json["epochs"].push_back({{"epoch", epoch.epoch},
                              {"loss", epoch.loss},
                              {"held_out_macro_f1", epoch.held_out_f1},
                              {"held_out_accuracy", epoch.held_out_accuracy}});
  }
  for (const StudyRow& row : study.rows) {
    nlohmann::ordered_json line = {{"method", row.method},
                                   {"data_set", row.data_set},
                                   {"style", row.style},
                                   {"tokens", row.confusion.tokens()},
                                   {"accuracy", row.confusion.accuracy()},
                                   {"macro_f1", row.confusion.macro_f1()}};
    for (const Region region : kRegions) {
      const std::optional<double> f1 = row.confusion.f1(region);
      line["f1"][std::string(region_name(region))] =
          f1.has_value() ? nlohmann::ordered_json(*f1) : nlohmann::ordered_json();
    }
    json["rows"].push_back(std::move(line));
  }
  return json;
}

}  // namespace memdecay
