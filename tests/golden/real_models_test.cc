// The models of the catalogue against transformers in fp32, as far as this user has fetched them.
//
// Exact must be the reference; fast must be no further from it than llama.cpp is on the same
// positions (thresholds.json, made by make_thresholds.py). Some chunks only, so that it takes
// seconds a model; bench/results has the whole text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "golden_model.h"
#include "sys/cpu.h"
#include "sys/user_folders.h"

namespace memdecay {
namespace {

using Json = nlohmann::json;

const Json& thresholds() {
  static const Json kThresholds =
      Json::parse(std::ifstream(MEMDECAY_GOLDEN_FOLDER "/thresholds.json"));
  return kThresholds.at("models");
}

class RealModel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (std::getenv("MEMDECAY_SANITIZED") != nullptr) {
      GTEST_SKIP() << "real models are too slow under a sanitizer; the tiny ones run there";
    }
    limits_ = thresholds().at(GetParam());
    const auto name = limits_.at("model").get<std::string>();
    const auto path = cached_model_path(name);
    if (!path.ok() || !std::filesystem::exists(*path)) {
      GTEST_SKIP() << name << " is not in the cache; tools/fetch_model.py fetches it";
    }
    path_ = path->string();
  }

  GoldenSummary judge(Precision precision, int chunks) const {
    const auto file = limits_.at("golden").get<std::string>();
    const auto golden = GoldenFile::read(MEMDECAY_GOLDEN_FOLDER "/" + file);
    EXPECT_TRUE(golden.ok()) << golden.status().message();
    const int threads = usable_cores();
    auto model = GoldenModel::open(path_, {.precision = precision, .threads = threads});
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (!golden.ok() || !model.ok()) return {};
    auto summary = (*model)->judge(*golden, chunks);
    EXPECT_TRUE(summary.ok()) << summary.status().message();
    if (!summary.ok()) return {};
    std::printf("%s: %zu positions, mean KL %.3g, p99 KL %.3g, same top %.4f\n", GetParam().c_str(),
                summary->count(), summary->mean_kl(), summary->kl_quantile(0.99),
                summary->same_top());
    return std::move(summary).value();
  }

  Json limits_;
  std::string path_;
};

// fp32 weights take up to eight times the file.
bool fits_in_memory(const std::string& path) {
  const auto pages = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L));
  const auto page_bytes = static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 0L));
  return std::filesystem::file_size(path) * 9 <= pages * page_bytes;
}

TEST_P(RealModel, ExactIsTheReference) {
  if (!fits_in_memory(path_)) GTEST_SKIP() << "this machine has no room for the model in fp32";
  const Json& limit = limits_.at("exact");
  const GoldenSummary summary = judge(Precision::kExact, limit.at("chunks").get<int>());
  ASSERT_GT(summary.count(), 0U);
  EXPECT_LE(summary.mean_kl(), limit.at("mean_kld").get<double>());
  EXPECT_GE(summary.same_top(), limit.at("same_top").get<double>());
}

TEST_P(RealModel, FastIsAsNearAsThePeer) {
  const Json& fast = limits_.at("fast");
  const Json& limit = fast.at("compact");
  const GoldenSummary summary = judge(Precision::kFast, fast.at("chunks").get<int>());
  ASSERT_GT(summary.count(), 0U);
  EXPECT_LE(summary.mean_kl(), limit.at("mean_kld").get<double>());
  EXPECT_LE(summary.kl_quantile(0.99), limit.at("p99_kld").get<double>());
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : thresholds().items()) names.push_back(entry.key());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Golden, RealModel, testing::ValuesIn(golden_names()),
                         [](const auto& named) {
                           std::string name = named.param;
                           for (char& letter : name) {
                             if (letter == '-' || letter == '.') letter = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace memdecay
