// What a form costs a model, and what the engine makes of it.
#include "engine/memory/form_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/memory/form_report_file.h"
#include "engine/model_file_for_test.h"
#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

constexpr std::uint32_t kHeads = 2, kHeadDim = 64, kWidth = 64;

void write_floats(std::vector<std::byte>& bytes, const GgufFile& file, const std::string& name,
                  std::size_t first, const std::vector<float>& values) {
  const auto tensor = file.find_tensor(name);
  ASSERT_TRUE(tensor.has_value()) << name;
  std::memcpy(bytes.data() + tensor->file_offset + first * sizeof(float), values.data(),
              values.size() * sizeof(float));
}

/// A model in which one channel of each head decides who is attended to: a key is what one number
/// of the token's state says, many times over, so a coarse key confuses tokens. The channel hardly
/// turns with the position. Where it is not `sharp` the same model attends to nothing much.
ModelFile channel_model(bool sharp) {
  RandomModelShape shape;
  shape.heads = shape.kv_heads = kHeads;
  shape.head_dim = kHeadDim;
  shape.width = kWidth;
  shape.matrix_type = WeightType::kF32;
  std::vector<std::byte> bytes = random_model("qwen2", shape, 5);
  const GgufFile file = GgufFile::from_bytes(bytes, "channel model").value();
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      const std::size_t channel = (head + 1) * kHeadDim - 1;
      std::vector<float> row(kWidth, 0.0F);
      row[7 + head] = 16.0F;
      const std::vector<float> nothing(kWidth);
      write_floats(bytes, file, block + "attn_k.weight", channel * kWidth, row);
      write_floats(bytes, file, block + "attn_q.weight", channel * kWidth, nothing);
      write_floats(bytes, file, block + "attn_q.bias", channel, {sharp ? 12.0F : 0.0F});
    }
  }
  return ModelFile(bytes);
}

EngineOptions budgeted(const ModelFile& file) {
  EngineOptions options = file.options();
  options.kv_budget_bytes = 8 << 20;
  return options;
}

FormReport measure(const std::string& path) {
  ThreadTeam team(1);
  const auto model = Model::load(path, Precision::kFast, team).value();
  const LayerGroups groups = make_layer_groups(model->config(), 16, KvFormat::kF16);
  const KernelTable& kernels = best_kernels();
  const auto transformer =
      Transformer::create(model->config(), model->weights(), groups, kernels, team, {64, 64})
          .value();
  return measure_forms(*model, *transformer, groups, form_check_tokens(*model)).value();
}

TEST(FormCheck, KeysThatDecideByOneChannelDoNotSurviveInt4) {
  const ModelFile sharp = channel_model(true);
  const FormReport report = measure(sharp.path());
  EXPECT_FALSE(report.keys_survive_int4())
      << report.divergence[2] << " with int8 keys, " << report.divergence[3];
  EXPECT_GT(report.divergence[3], 4 * report.divergence[2]);
}

TEST(FormCheck, OtherKeysDo) {
  const ModelFile flat = channel_model(false);
  const FormReport report = measure(flat.path());
  EXPECT_TRUE(report.keys_survive_int4()) << report.divergence[3];
  EXPECT_EQ(report.rounding_error[0], 0);
  EXPECT_EQ(report.divergence[0], 0);
  for (std::size_t form = 1; form < kPageFormCount; ++form) {
    EXPECT_GT(report.rounding_error[form], report.rounding_error[form - 1]) << form;
    EXPECT_LT(report.rounding_error[form], 0.2F) << form;
  }
}

TEST(FormCheck, IsTheSameTwice) {
  const ModelFile file("gemma3", RandomModelShape{});
  const FormReport first = measure(file.path());
  const FormReport second = measure(file.path());
  EXPECT_EQ(first.rounding_error, second.rounding_error);
  EXPECT_EQ(first.divergence, second.divergence);
}

TEST(FormCheck, SurvivalIsAMatterOfTheKeysAlone) {
  FormReport report;
  report.divergence = {0, 0.001, 0.02, 0.09};
  EXPECT_TRUE(report.keys_survive_int4()) << "no harm";
  report.divergence = {0, 0.001, 0.02, 0.2};
  EXPECT_FALSE(report.keys_survive_int4());
  report.divergence = {0, 0.3, 0.3, 0.6};
  EXPECT_TRUE(report.keys_survive_int4()) << "whatever it is, int8 keys do not mend it";
}

/// Opens a session and tells which forms it may take, and what was said.
struct Opened {
  std::array<bool, kPageFormCount> offered = {};
  std::array<float, kPageFormCount> errors = {};
  std::vector<std::string> notes;
};
Opened open(EngineOptions options, KvForms forms) {
  Opened opened;
  options.kv_forms = forms;
  options.on_note = [&](const std::string& note) { opened.notes.push_back(note); };
  const auto engine = ModelFile::engine(options);
  const auto first = engine->open_session().value();
  const auto second = engine->open_session().value();
  for (std::size_t form = 0; form < kPageFormCount; ++form) {
    opened.offered[form] = second->memory()->options().forms[form].bytes > 0;
    opened.errors[form] = second->memory()->options().forms[form].rounding_error;
  }
  return opened;
}

TEST(FormCheck, TheLadderEndsWhereTheKeysDo) {
  const ModelFile sharp = channel_model(true);
  const Opened opened = open(budgeted(sharp), KvForms::kAuto);
  EXPECT_EQ(opened.offered, (std::array{true, true, true, false}));
  ASSERT_EQ(opened.notes.size(), 1U) << "said once";
  EXPECT_NE(opened.notes[0].find("keys do not survive int4"), std::string::npos);
  const ModelFile flat = channel_model(false);
  const Opened other = open(budgeted(flat), KvForms::kAuto);
  EXPECT_EQ(other.offered, (std::array{true, true, true, true}));
  EXPECT_TRUE(other.notes.empty());
}

TEST(FormCheck, WhoAsksForInt4GetsItAndIsWarned) {
  const ModelFile sharp = channel_model(true);
  const Opened opened = open(budgeted(sharp), KvForms::kInt4);
  EXPECT_TRUE(opened.offered[form_index(PageForm::kInt4)]);
  ASSERT_EQ(opened.notes.size(), 1U);
  EXPECT_NE(opened.notes[0].find("k8v4"), std::string::npos);
  EXPECT_TRUE(open(budgeted(sharp), KvForms::kInt8).notes.empty()) << "nobody asked";
}

class FormReportFile : public testing::Test {
 protected:
  const FolderForTest home_;
  const std::filesystem::path folder_ = home_.path("cache");  // not made yet
};

TEST_F(FormReportFile, WhatWasMeasuredIsReadTheNextTime) {
  const ModelFile flat = channel_model(false);
  EngineOptions options = budgeted(flat);
  options.measurements_folder = (folder_ / "models").string();
  const Opened measured = open(options, KvForms::kAuto);
  const std::string fingerprint = file_fingerprint(flat.path()).value();
  FormReport stored = read_form_report(folder_ / "models", fingerprint).value();
  EXPECT_EQ(stored.rounding_error, measured.errors);
  stored.rounding_error[1] = 0.5F;  // what no measurement would say: so it was read
  stored.divergence = {0, 0, 0.01, 3};
  ASSERT_TRUE(write_form_report(folder_ / "models", fingerprint, stored).ok());
  const Opened read = open(options, KvForms::kAuto);
  EXPECT_EQ(read.errors[1], 0.5F);
  EXPECT_FALSE(read.offered[form_index(PageForm::kInt4)]);
  EXPECT_EQ(read.notes.size(), 1U);
  // Only whole files are left.
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "models"))
    EXPECT_EQ(entry.path().extension(), ".json");
}

TEST_F(FormReportFile, DamagedFilesAreMeasuredAgain) {
  const ModelFile flat = channel_model(false);
  EngineOptions options = budgeted(flat);
  options.measurements_folder = folder_.string();
  const Opened measured = open(options, KvForms::kAuto);
  const std::string fingerprint = file_fingerprint(flat.path()).value();
  const auto path = folder_ / (fingerprint + ".forms.json");
  const std::string deep =
      "{\"version\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  for (const std::string_view damage : std::initializer_list<std::string_view>{
           deep, "", "{", "[]", "{\"version\": 1}",
           "{\"version\": 0, \"rounding_error\": [0,0,0,0]}",
           R"({"version": 1, "rounding_error": [0, 1, 2], "divergence": [0, 0, 0, 0]})",
           R"({"version": 1, "rounding_error": [0, 1, 2, -1], "divergence": [0, 0, 0, 0]})",
           R"({"version": 1, "rounding_error": [0, 1, 2, 1e99], "divergence": [0, 0, 0, 0]})",
           R"({"version": 1, "rounding_error": [0, 1, 2, 3], "divergence": [0, 0, 0, "x"]})"}) {
    std::ofstream(path, std::ios::trunc) << damage;
    EXPECT_FALSE(read_form_report(folder_, fingerprint).has_value()) << damage;
    EXPECT_EQ(open(options, KvForms::kAuto).errors, measured.errors) << damage;
    EXPECT_TRUE(read_form_report(folder_, fingerprint).has_value()) << "put right: " << damage;
  }
}

TEST_F(FormReportFile, AFolderThatCannotBeWrittenIsSaidAndNoFailure) {
  std::ofstream(folder_.string()) << "a file";
  const ModelFile flat = channel_model(false);
  EngineOptions options = budgeted(flat);
  options.measurements_folder = (folder_ / "models").string();
  const Opened opened = open(options, KvForms::kAuto);
  ASSERT_EQ(opened.notes.size(), 1U);
  EXPECT_NE(opened.notes[0].find("not kept"), std::string::npos);
}

TEST_F(FormReportFile, FingerprintsTellFilesApart) {
  std::filesystem::create_directories(folder_);
  const auto write = [&](const std::string& bytes) {
    const auto path = (folder_ / "file").string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return file_fingerprint(path).value();
  };
  std::string bytes(300'000, 'a');
  const std::string first = write(bytes);
  EXPECT_EQ(first.size(), 16U);
  EXPECT_EQ(write(bytes), first);
  bytes.back() = 'b';
  EXPECT_NE(write(bytes), first);
  bytes.back() = 'a';
  bytes.front() = 'b';
  EXPECT_NE(write(bytes), first);
  EXPECT_NE(write(bytes + "a"), write(bytes));
  EXPECT_NE(write(""), write("a"));
  EXPECT_EQ(file_fingerprint((folder_ / "none").string()).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace memdecay
